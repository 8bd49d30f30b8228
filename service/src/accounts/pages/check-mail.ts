import type { Context } from "../../core/context.ts";
import { type Html, type HtmlPage, html } from "../../platform/http/html.ts";
import { form } from "./form.ts";
import { type PageRequest, withReturnTo } from "./page-request.ts";

/** The script fills in the address: in the query it would end up in histories and logs. */
export const checkMailPage = ({ config }: Context, pageRequest: PageRequest): HtmlPage => ({
  title: "Check your mail",
  scripts: ["form.js", "memory.js", "check-mail.js"],
  main: html`<section class="card">
<h1>Check your mail</h1>
<p class="lead">A message with a link is on its way to <strong id="address">the address that you gave</strong>. The link works once, and for a few minutes.</p>
${config.mail === "dev" && html`<p class="notice">This is a test environment, which mails nobody: <a href="/dev/mail">open the mailbox</a> instead. From another machine, open it by the address that the start printed.</p>`}
${pageRequest.query["after"] === "registration" ? registerAgain(pageRequest) : sendAgain(pageRequest)}
</section>`,
});

const sendAgain = ({ returnTo }: PageRequest): Html => html`<div class="stack" id="again" hidden>
<p class="small">No email? Check your spam folder, or send it again.</p>
${form({ id: "resend", submit: "Send it again", secondary: true, returnTo })}
</div>
<p><a href="${withReturnTo("/auth/sign-in", returnTo)}">Use another address</a></p>`;

/** Only the user has the password, so the server cannot send the registration again. */
const registerAgain = ({ returnTo }: PageRequest): Html =>
  html`<p class="small">No email? Check your spam folder, or <a href="${withReturnTo("/auth/register", returnTo)}">register again</a>.</p>`;
