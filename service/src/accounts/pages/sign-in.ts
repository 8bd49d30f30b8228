import type { Context } from "../../core/context.ts";
import { type Html, type HtmlPage, html } from "../../platform/http/html.ts";
import { hasPlainCookies } from "../../platform/http/plain-cookies.ts";
import { type Field, field, form, newPasswordField, passwordField } from "./form.ts";
import { type PageRequest, withReturnTo } from "./page-request.ts";
import { renderProblem } from "./problem-messages.ts";
import { GITHUB_LOGO, GOOGLE_LOGO } from "./provider-logos.ts";

const OVER_PLAIN_HTTP = html`<p class="notice warning">This test service is used over plain HTTP: others on the network can read what you type.</p>`;

const mailField = (more: Pick<Field, "hint" | "autofocus">) =>
  field({
    name: "email",
    label: "Email address",
    type: "email",
    autocomplete: "username",
    missing: "Enter your email address.",
    maxLength: 254,
    ...more,
  });

/** With a mailed link, or with a password when the query asks for it or no email is sent. */
export function signInPage(ctx: Context, pageRequest: PageRequest): HtmlPage {
  const byPassword = pageRequest.query["with"] === "password" || ctx.config.mail === "off";
  return {
    title: "Sign in",
    scripts: ["form.js", "memory.js", "sign-in.js"],
    main: html`<section class="card">
<h1>Sign in</h1>
${hasPlainCookies(ctx) && OVER_PLAIN_HTTP}
${renderProblem(pageRequest.query["problem"])}
${renderCurrentUser(pageRequest)}
${byPassword ? passwordForm(ctx, pageRequest) : linkForm(pageRequest)}
${socialButtons(ctx, pageRequest)}
</section>`,
  };
}

/** A redirect would loop when the page needs a fresh sign-in or another account. */
const renderCurrentUser = ({ user, returnTo }: PageRequest) =>
  user &&
  html`<div class="notice"><p>You are signed in as <strong>${user.name}</strong> (${user.email}).</p>
<p><a href="${returnTo}">Continue</a>, or sign in again below.</p></div>`;

const linkForm = ({
  returnTo,
}: PageRequest): Html => html`<p class="lead">We mail you a link that signs you in. If you are new here, it makes your account.</p>
${form({ id: "link", fields: mailField({ autofocus: true }), submit: "Mail me a link", returnTo })}
<p><a href="${withReturnTo("/auth/sign-in?with=password", returnTo)}">Use a password instead</a></p>`;

const passwordForm = ({ config }: Context, { returnTo }: PageRequest): Html => html`${form({
  id: "password-sign-in",
  fields: html`${mailField({ autofocus: true })}
${passwordField({ label: "Password", missing: "Enter your password.", autocomplete: "current-password" })}`,
  submit: "Sign in",
  returnTo,
})}
${
  config.mail !== "off" &&
  html`<p><a href="${withReturnTo("/auth/sign-in", returnTo)}">Mail me a link instead</a>, also when you have forgotten the password.</p>
<p>New here? <a href="${withReturnTo("/auth/register", returnTo)}">Register with a password</a>.</p>`
}`;

function socialButtons({ config }: Context, { returnTo }: PageRequest): Html | null {
  if (!config.github && !config.google) return null;
  const button = (provider: string, mark: Html, name: string) =>
    html`<a class="button wide" href="${withReturnTo(`/api/auth/${provider}`, returnTo)}">${mark}Continue with ${name}</a>`;
  return html`<p class="or">or</p>
${config.github && button("github", GITHUB_LOGO, "GitHub")}
${config.google && button("google", GOOGLE_LOGO, "Google")}`;
}

export function registerPage(ctx: Context, pageRequest: PageRequest): HtmlPage {
  return {
    title: "Register",
    scripts: ["form.js", "memory.js", "sign-in.js"],
    main: html`<section class="card">
<h1>Register with a password</h1>
<p class="lead">Or do without one: <a href="${withReturnTo("/auth/sign-in", pageRequest.returnTo)}">a mailed link</a> makes your account too.</p>
${form({ id: "registration", fields: registrationFields, submit: "Register", returnTo: pageRequest.returnTo })}
${socialButtons(ctx, pageRequest)}
</section>`,
  };
}

const registrationFields = html`${field({
  name: "name",
  label: "Name",
  hint: "Shown with your products and reviews.",
  autocomplete: "name",
  missing: "Enter the name that others will see.",
  autofocus: true,
  maxLength: 100,
})}
${mailField({ hint: "We mail you a link there, to be sure that it is yours." })}
${newPasswordField}`;
