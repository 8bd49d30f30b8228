import { type HtmlPage, html } from "../../platform/http/html.ts";
import { form } from "./form.ts";

/** Mail scanners open links, too, so only the click redeems the token. */
export const verifyPage = (): HtmlPage => ({
  title: "Sign in",
  scripts: ["form.js", "memory.js", "verify.js"],
  main: html`<section class="card" id="ask">
<h1>Sign in to Stoa</h1>
<p class="lead">You opened the link from our email. Click the button to sign in.</p>
${form({ id: "verification", submit: "Sign in" })}
</section>
<section class="card" id="lost" hidden>
<h1 tabindex="-1">This link cannot be used</h1>
<p class="lead">It was used before, is too old, or did not come here whole. A link works once: ask for a new one.</p>
<div class="actions"><a class="button primary" href="/auth/sign-in">Ask for a new link</a></div>
</section>`,
});
