import type { Context } from "../../core/context.ts";
import { type HtmlPage, html } from "../../platform/http/html.ts";
import { field, form } from "./form.ts";
import { type PageRequest, withReturnTo } from "./page-request.ts";

/** The challenge of the first step is in the URL fragment. */
export const twoFactorPage = (_ctx: Context, { returnTo }: PageRequest): HtmlPage => ({
  title: "Two-factor authentication",
  scripts: ["form.js", "memory.js", "two-factor.js"],
  main: html`<section class="card" id="by-app">
<h1 tabindex="-1">Enter your code</h1>
<p class="lead">Your authenticator app shows six digits for Stoa.</p>
${form({ id: "app-code", fields: codeField, submit: "Sign in", returnTo })}
<button class="link" type="button" data-shows-card="by-backup-code">Use a backup code instead</button>
</section>
<section class="card" id="by-backup-code" hidden>
<h1 tabindex="-1">Enter a backup code</h1>
<p class="lead">One of the ten that you kept when you set this up. Each works once.</p>
${form({ id: "backup-code", fields: backupCodeField, submit: "Sign in", returnTo })}
<button class="link" type="button" data-shows-card="by-app">Use the app instead</button>
</section>
<section class="card" id="over" hidden>
<h1 tabindex="-1">Please begin again</h1>
<p class="lead">Between the two steps of signing in lie five minutes at most, and they are over.</p>
<div class="actions"><a class="button primary" href="${withReturnTo("/auth/sign-in", returnTo)}">Sign in</a></div>
</section>`,
});

const codeField = field({
  name: "code",
  id: "code",
  label: "Code",
  autocomplete: "one-time-code",
  missing: "Enter the six digits that your app shows.",
  code: true,
  digits: true,
  autofocus: true,
});

const backupCodeField = field({
  name: "code",
  id: "backup",
  label: "Backup code",
  autocomplete: "off",
  missing: "Enter one of your backup codes.",
  code: true,
});
