import type { KoaContextWithOIDC } from "oidc-provider";
import { html } from "../../platform/http/html.ts";
import { toFormActionSource } from "./redirect-uris.ts";
import { showPage } from "./request-context.ts";

interface OAuthError {
  error: string;
  error_description?: string | undefined;
}

/** For errors that cannot be redirected to the client. Programs get JSON. */
export function showErrorPage(
  koa: KoaContextWithOIDC,
  { error, error_description: description }: OAuthError,
): void {
  if (koa.accepts("json", "html") !== "html") {
    koa.body = { error, error_description: description };
    return;
  }
  showPage(koa, {
    title: "This request is not valid",
    main: html`<section class="card">
<h1>This request is not valid</h1>
<p>The application sent an invalid request. No access was granted. Go back to the application and try again, or report
this to its developers:</p>
<p><code>${error}</code>${description ? html`: ${description}` : ""}</p>
</section>`,
  });
}

/** RP-initiated logout. */
export function showLogoutPage(koa: KoaContextWithOIDC): void {
  const { state } = koa.oidc.session!;
  const leadsTo = state?.["postLogoutRedirectUri"];
  showPage(koa, {
    title: "Sign out",
    formAction: typeof leadsTo === "string" ? [toFormActionSource(new URL(leadsTo))] : [],
    main: html`<section class="card">
<h1>Sign out of Stoa?</h1>
<p>${koa.oidc.client?.clientName ?? "An application"} asks to end your session here, in this browser.</p>
<form method="post" action="/oauth/logout/confirm">
<input type="hidden" name="xsrf" value="${String(state?.["secret"])}">
<div class="actions">
<button class="button primary" name="logout" value="yes">Sign out</button>
<button class="button">Stay signed in</button>
</div>
</form>
</section>`,
  });
}

export function showSignedOutPage(koa: KoaContextWithOIDC): void {
  showPage(koa, {
    title: "Signed out",
    main: html`<section class="card">
<h1>You can close this page</h1>
<p>You are done here.</p>
</section>`,
  });
}
