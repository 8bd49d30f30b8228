import type { Context } from "../../core/context.ts";
import { type Html, type HtmlPage, html } from "../../platform/http/html.ts";
import { readTwoFactor } from "../two-factor/two-factor.ts";
import { field, form } from "./form.ts";
import type { PageRequest, SignedInUser } from "./page-request.ts";

/** Of ten. */
const FEW_CODES = 3;

/** The page holds all three steps: explanation, QR code, backup codes. The script shows one at a time. */
export async function twoFactorSetUpPage(
  ctx: Context,
  pageRequest: PageRequest & { user: SignedInUser },
): Promise<HtmlPage> {
  const { enabled, backupCodesLeft } = await readTwoFactor(ctx, pageRequest.user.session);
  if (enabled) return enabledPage(backupCodesLeft, pageRequest.returnTo);
  return {
    title: "Set up two-factor authentication",
    scripts: ["form.js", "two-factor-set-up.js"],
    main: html`${startSection}${scanSection}${backupCodesSection(pageRequest.returnTo, enabledText)}`,
  };
}

const enabledPage = (codesLeft: number, returnTo: string): HtmlPage => ({
  title: "Two-factor authentication",
  scripts: ["form.js", "two-factor-set-up.js"],
  main: html`<section class="card">
<h1><span class="whole">Two-factor</span> authentication is on</h1>
<p class="lead">To sign in, you need a code from your app or a backup code.</p>
<p class="notice${codesLeft < FEW_CODES && " warning"}">Backup codes left: <strong>${codesLeft}</strong>.</p>
<div class="actions"><a class="button" href="/auth/signed-in">Back to your account</a></div>
</section>
${renewSection}
${disableSection}
${backupCodesSection(returnTo, html`Without your phone, one of these lets you in. Each works once, and they are shown only now. <strong>Those that you had before work no more.</strong>`)}
${disabledSection}`,
});

const codeField = (id: string): Html =>
  field({
    name: "code",
    id,
    label: "Code",
    hint: "The six digits that the app shows now, or a backup code.",
    autocomplete: "one-time-code",
    missing: "Enter a code of your app, or a backup code.",
    code: true,
  });

const renewSection: Html = html`<section class="card" id="renewing">
<h2>New backup codes</h2>
<p>Replace all backup codes with ten new ones if few are left or if someone may have seen them.</p>
${form({ id: "renewal", fields: codeField("renewal-code"), submit: "Make new backup codes", secondary: true })}
</section>`;

const disableSection: Html = html`<section class="card" id="removing">
<h2>Turn it off</h2>
<p>Signing in will then need only your email or password. For a new phone, turn it off here and set it up again.</p>
${form({ id: "removal", fields: codeField("removal-code"), submit: "Turn it off", secondary: true })}
</section>`;

const disabledSection: Html = html`<section class="card" id="removed" hidden>
<h1 tabindex="-1"><span class="whole">Two-factor</span> authentication is off</h1>
<p class="lead">Signing in no longer needs a code. You can remove Stoa from your authenticator app.</p>
<div class="actions">
<a class="button" href="/auth/two-factor/set-up">Set it up again</a>
<a class="button" href="/auth/signed-in">Back to your account</a>
</div>
</section>`;

const startSection: Html = html`<section class="card" id="beginning">
<h1>Set up <span class="whole">two-factor</span> authentication</h1>
<p class="lead">Signing in will need two things: your email or password, and a code from your phone.</p>
<p>You need an authenticator app, such as Aegis, Google Authenticator or the one in your password manager.</p>
${form({ id: "begin", submit: "Begin" })}
</section>`;

const scanSection: Html = html`<section class="card" id="scanning" hidden>
<h1 tabindex="-1">Scan this with your app</h1>
<img class="qr" id="qr" width="216" height="216" alt="QR code to scan. The key below contains the same secret as text.">
<details>
<summary>No camera at hand?</summary>
<p>Type this key into your app, or <a id="otpauth" href="#scanning">open it on this device</a>.</p>
<p><code class="secret" id="secret"></code></p>
</details>
${form({
  id: "confirmation",
  fields: field({
    name: "code",
    label: "Code",
    hint: "The six digits that the app shows now.",
    autocomplete: "one-time-code",
    missing: "Enter the six digits that your app shows.",
    code: true,
    digits: true,
  }),
  submit: "Turn it on",
})}
</section>`;

const enabledText = html`Two-factor authentication is on. Without your phone, one of these lets you in. Each works once, and they are shown only now.`;

const backupCodesSection = (
  returnTo: string,
  lead: Html,
): Html => html`<section class="card" id="keeping" hidden>
<h1 tabindex="-1">Keep your backup codes</h1>
<p class="lead">${lead}</p>
<ol class="codes" id="codes"></ol>
<div class="actions">
<button class="button" type="button" id="copy">Copy</button>
<button class="button" type="button" id="download">Download</button>
<button class="button" type="button" id="print">Print</button>
</div>
<p class="small" id="copied" role="status"></p>
<div class="check"><input type="checkbox" id="kept"><label for="kept">I have kept them where I find them without my phone.</label></div>
<a class="button primary wide" id="leave" aria-disabled="true" role="link" data-href="${returnTo}">Done</a>
</section>`;
