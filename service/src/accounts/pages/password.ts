import type { Context } from "../../core/context.ts";
import { isFresh } from "../../platform/http/fresh-sign-in.ts";
import { type Html, type HtmlPage, html } from "../../platform/http/html.ts";
import { form, newPasswordField } from "./form.ts";
import type { PageRequest, SignedInUser } from "./page-request.ts";

/** Also for a forgotten password: a mailed link is a fresh sign-in. */
export const passwordPage = (ctx: Context, { user }: PageRequest & { user: SignedInUser }): HtmlPage => ({
  title: "Set a password",
  scripts: ["form.js", "password.js"],
  main: html`<section class="card">
<h1>Set a password</h1>
${isFresh(ctx, user.session) ? newPassword(user) : signInAgain}
</section>
<section class="card" id="done" hidden>
<h1 tabindex="-1">Your password is set</h1>
<p class="lead">Wherever else you were signed in, you are signed out now.</p>
<div class="actions"><a class="button" href="/auth/signed-in">Back to your account</a></div>
</section>`,
});

const newPassword = ({
  email,
}: SignedInUser): Html => html`<p class="lead">It opens the account of <strong>${email}</strong> from now on, in the place of the one before it.</p>
${form({ id: "new-password", fields: html`${newPasswordField}${revokeChoice}`, submit: "Set it" })}`;

const revokeChoice = html`<div class="check"><input type="checkbox" id="revoke-access"><label for="revoke-access">Also revoke my API keys, the applications that act for me, and my OAuth clients' secrets</label></div>`;

const signInAgain = html`<p class="lead">This needs a fresh sign-in. If you have forgotten your password, let us mail you a link.</p>
<div class="actions"><a class="button primary" href="/auth/sign-in?returnTo=%2Fauth%2Fpassword">Sign in again</a></div>`;
