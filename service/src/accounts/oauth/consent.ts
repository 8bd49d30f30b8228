import type { Scope } from "@stoa/contract";
import type { Client, Provider } from "oidc-provider";
import type { Context, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { findAccount, findActiveGrant } from "./queries.ts";
import { isIdentityScope, scopesOfResource } from "./scopes.ts";

type Interaction = Awaited<ReturnType<Provider["interactionDetails"]>>;
interface ProviderContext {
  ctx: Context;
  provider: Provider;
}

export interface ConsentRequest {
  client: { id: string; name: string };
  account: { name: string; email: string };
  redirectUri: URL;
  identity: Scope[];
  /** By URL of the resource. */
  resources: Record<string, Scope[]>;
}

export const interactionExpired = () =>
  new ApiError(
    "INVALID_STATE",
    "This request has expired, or belongs to another browser or account. Go back to the application and start again.",
  );

/** Read again at the click, so that the page cannot widen what is granted. */
export async function readConsentRequest(
  { ctx, provider }: ProviderContext,
  { params }: Interaction,
  { userId }: SessionCaller,
): Promise<ConsentRequest> {
  const client = await provider.Client.find(params["client_id"] as string);
  const account = await findAccount(ctx.db, userId);
  if (!client || !account) throw interactionExpired();
  const scopes = new Set(((params["scope"] as string | undefined) ?? "").split(" "));
  const resources = [params["resource"] ?? []].flat() as string[];
  const origin = ctx.links.origin();
  return {
    client: { id: client.clientId, name: client.clientName ?? client.clientId },
    account: { name: account.name, email: account.email },
    redirectUri: new URL(params["redirect_uri"] as string),
    identity: [...scopes].filter(isIdentityScope),
    resources: Object.fromEntries(
      resources.map((resource) => [
        resource,
        requestableScopes(client, scopesOfResource(origin, resource) ?? [], scopes),
      ]),
    ),
  };
}

const requestableScopes = (
  client: Client,
  known: readonly Scope[],
  requested: ReadonlySet<string>,
): Scope[] => {
  const allowed = (client["permissions"] as string[] | undefined) ?? known;
  return known.filter((scope) => requested.has(scope) && allowed.includes(scope));
};

/** Adds to the existing grant, for 90 days from now. Returns the grant's id. */
export async function grantConsent(
  { ctx, provider }: ProviderContext,
  { userId }: SessionCaller,
  { client, identity, resources }: ConsentRequest,
): Promise<string> {
  const known = await findActiveGrant(ctx.db, userId, client.id, ctx.now());
  const grant =
    (known && (await provider.Grant.find(known.id))) ??
    Object.assign(new provider.Grant({ accountId: toId("usr", userId), clientId: client.id }), {
      jti: ctx.newId(),
    });
  Object.assign(grant, { exp: undefined });
  if (identity.length > 0) grant.addOIDCScope(identity);
  for (const [resource, scopes] of Object.entries(resources))
    if (scopes.length > 0) grant.addResourceScope(resource, scopes);
  return grant.save();
}
