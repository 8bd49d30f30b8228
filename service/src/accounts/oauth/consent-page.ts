import { scopeDescriptions } from "@stoa/contract";
import { type HtmlPage, html } from "../../platform/http/html.ts";
import type { ConsentRequest } from "./consent.ts";
import { isLoopbackUri, toFormActionSource } from "./redirect-uris.ts";

/** Shows the host of the redirect URI: an attacker can choose any client name, but not the host. */
export function consentPage({ client, account, redirectUri, identity, resources }: ConsentRequest): HtmlPage {
  const scopes = [...new Set([...identity, ...Object.values(resources).flat()])];
  return {
    title: `Allow ${client.name}?`,
    formAction: [toFormActionSource(redirectUri)],
    main: html`<section class="card">
<h1>Allow ${client.name}?</h1>
<p>You are signed in as <strong>${account.name}</strong> (${account.email}).
<strong>${client.name}</strong> asks to do this in your name:</p>
<ul class="permissions">
${scopes.map((scope) => html`<li>${scopeDescriptions[scope]} <code>${scope}</code></li>\n`)}</ul>
<p>Your answer goes to ${renderDestination(redirectUri)}.</p>
<p class="notice warning">This application's name is not verified. Continue only if you started this yourself.</p>
<form method="post">
<div class="actions">
<button class="button primary" name="decision" value="allow">Allow</button>
<button class="button" name="decision" value="deny">Deny</button>
</div>
</form>
<p class="small">You can revoke this at any time in <a href="/account/connected-apps">your account</a>. Not you? Sign out there, then start again in the application.</p>
</section>`,
  };
}

const renderDestination = (uri: URL) =>
  isLoopbackUri(uri.href)
    ? html`an application on this computer (<strong>${uri.host}</strong>)`
    : html`<strong>${uri.host}</strong>`;
