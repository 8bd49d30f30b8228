import type { Context } from "../../core/context.ts";
import { type Html, type HtmlPage, html } from "../../platform/http/html.ts";
import { hasAccounts } from "../people/accounts.ts";
import { hasSecondFactor } from "../two-factor/second-factor.ts";
import { form } from "./form.ts";
import type { PageRequest, SignedInUser } from "./page-request.ts";

/** The one-time link of the first start leads here. */
export async function firstAdminPage(ctx: Context, { user }: PageRequest): Promise<HtmlPage> {
  return {
    title: "First administrator",
    scripts: ["form.js", "memory.js", "first-admin.js"],
    main: html`<section class="card" id="ask">
<h1>Become the administrator</h1>
<p class="lead">This link makes one account the first administrator of this Stoa.</p>
${user ? renderAcceptance(user) : signInFirst}
${!(await hasAccounts(ctx.db)) && restoreInstead}
</section>
<section class="card" id="done" hidden>
<h1 tabindex="-1">You are the administrator</h1>
${user && (await renderNextStep(ctx, user))}
</section>
<section class="card" id="lost" hidden>
<h1 tabindex="-1">This link cannot be used</h1>
<p class="lead">It was used before, is older than half an hour, or did not come here whole. The next start of the service prints a new one, as long as there is no administrator.</p>
</section>`,
  };
}

const renderStep = (lead: string, path: string, label: string): Html => html`<p class="lead">${lead}</p>
<div class="actions"><a class="button primary" href="${path}">${label}</a></div>`;

/** Admin rights work only in a session with two factors. */
async function renderNextStep({ db }: Context, { session }: SignedInUser): Promise<Html> {
  if (session.secondFactor)
    return renderStep("Your rights work at once.", "/auth/signed-in", "Go to your account");
  if (await hasSecondFactor(db, session.userId)) {
    const signIn = "/auth/sign-in?returnTo=%2Fauth%2Fsigned-in";
    return renderStep(
      "Your rights work once you have signed in with a code of your app.",
      signIn,
      "Sign in again",
    );
  }
  return renderStep(
    "One step is left: administrator rights need two-factor authentication.",
    "/auth/two-factor/set-up",
    "Set up two-factor authentication",
  );
}

const renderAcceptance = ({
  name,
  email,
}: SignedInUser): Html => html`<p>You are signed in as <strong>${name}</strong> (${email}).</p>
${form({ id: "acceptance", submit: "Become the administrator" })}
<p class="small">Not you? <a href="/auth/signed-in">Sign out first.</a></p>`;

const restoreInstead = html`<p class="small">Do you move an installation here? <a href="/restore">Restore a backup</a> instead. That works until there is an account.</p>`;

const signInFirst = html`<p>Sign in first, with the account that will become the administrator. You return here afterwards.</p>
<div class="actions"><a class="button primary" href="/auth/sign-in?returnTo=%2Fauth%2Ffirst-admin">Sign in</a></div>`;
