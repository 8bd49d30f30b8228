import type { Context } from "../../core/context.ts";
import { type Html, type HtmlPage, html } from "../../platform/http/html.ts";
import { safeReturnTo } from "../../platform/http/return-to.ts";
import { hasSecondFactor } from "../two-factor/second-factor.ts";
import { form } from "./form.ts";
import type { PageRequest, SignedInUser } from "./page-request.ts";

/** Shows the account, since a link of another user may have signed the browser in. */
export async function signedInPage(
  ctx: Context,
  { user, returnTo }: PageRequest & { user: SignedInUser },
): Promise<HtmlPage> {
  const isProtected = await hasSecondFactor(ctx.db, user.session.userId);
  return {
    title: "Signed in",
    scripts: ["form.js", "memory.js", "entries.js", "signed-in.js", "grants.js"],
    main: html`<section class="card">
<h1>You are signed in</h1>
${renderDetails(user, isProtected)}
${renderContinue(returnTo)}
${renderSecondFactorHint(user, isProtected)}
${form({ id: "sign-out", submit: "Sign out", secondary: true })}
<p class="small">Not you? Sign out, then sign in with your own address.</p>
</section>
<section class="card" id="sessions" hidden>
<h2 tabindex="-1">Where you are signed in</h2>
<ul class="entries" id="entries"></ul>
<p class="small" id="ended" role="status"></p>
<button class="button" type="button" id="end-others" hidden>Sign out everywhere else</button>
</section>
<section class="card" id="grants" hidden>
<h2 tabindex="-1">Applications that may act for you</h2>
<ul class="entries" id="grant-entries"></ul>
<p class="small" id="revoked" role="status"></p>
</section>`,
  };
}

const renderDetails = (
  { name, email, session }: SignedInUser,
  isProtected: boolean,
): Html => html`<dl class="facts">
<dt>Name</dt><dd>${name}</dd>
<dt>Email address</dt><dd>${email}</dd>
<dt>Role</dt><dd>${session.role}</dd>
<dt>Password</dt><dd><a href="/auth/password">set or change it</a></dd>
<dt>Two-factor</dt><dd>${isProtected ? "on" : "off"} – <a href="/auth/two-factor/set-up">${isProtected ? "new codes, or turn it off" : "set it up"}</a></dd>
</dl>`;

function renderContinue(returnTo: string): Html {
  return returnTo === safeReturnTo(undefined)
    ? html`<div class="actions"><a class="button primary" href="/docs">API reference</a></div>`
    : html`<div class="actions"><a class="button primary" href="${returnTo}">Continue</a></div>`;
}

/** For an administrator without a second factor in this session. */
const renderSecondFactorHint = ({ session }: SignedInUser, isProtected: boolean) =>
  session.role === "admin" &&
  !session.secondFactor &&
  html`<p class="notice warning">An administrator's rights work only in a session that was entered with two factors: ${
    isProtected
      ? html`<a href="/auth/sign-in">sign in with your code</a>.`
      : html`<a href="/auth/two-factor/set-up">set up two-factor authentication</a>.`
  }</p>`;
