import type { Context } from "../../core/context.ts";
import { type HtmlPage, html } from "../../platform/http/html.ts";

/** Shown in place of a form that would fail, so that no link or password is lost. */
export const wrongOriginPage = ({ config, links }: Context, host: string): HtmlPage => ({
  title: "Sign in at another address",
  status: 400,
  main: html`<section class="card">
<h1>Sign in at another address</h1>
<p class="lead">You came to <strong>${host}</strong>, and this service signs people in at <a href="${links.origin()}/auth/sign-in"><strong>${links.origin()}</strong></a> alone.</p>
<p>For the operator: ${config.publicUrl ? "change" : "set"} <code>STOA_PUBLIC_URL</code> to the address that browsers use, such as <code>${host}</code>, and start again.</p>
</section>`,
});
