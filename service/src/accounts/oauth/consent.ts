import type { Scope } from "@stoa/contract";
import type { Client, Provider } from "oidc-provider";
import type { Context, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { findAccount, findLiveGrant } from "./queries.ts";
import { isIdentityScope, scopesAt } from "./scopes.ts";

type Interaction = Awaited<ReturnType<Provider["interactionDetails"]>>;
interface Where {
  ctx: Context;
  provider: Provider;
}

/** What a client asks of somebody. */
export interface Consent {
  client: { id: string; name: string };
  account: { name: string; email: string };
  redirectUri: URL;
  identity: Scope[];
  /** By URL of the resource. */
  resources: Record<string, Scope[]>;
}

export const gone = () =>
  new ApiError(
    "INVALID_STATE",
    "This request has expired, or belongs to another browser or account. Go back to the application and start again.",
  );

/** Read anew from the request itself and from what the client may ask for, at the look and at the click. */
export async function consentOf(
  { ctx, provider }: Where,
  { params }: Interaction,
  { userId }: SessionCaller,
): Promise<Consent> {
  const client = await provider.Client.find(params["client_id"] as string);
  const account = await findAccount(ctx.db, userId);
  if (!client || !account) throw gone();
  const scopes = new Set(((params["scope"] as string | undefined) ?? "").split(" "));
  const resources = [params["resource"] ?? []].flat() as string[];
  const origin = ctx.links.origin();
  return {
    client: { id: client.clientId, name: client.clientName ?? client.clientId },
    account: { name: account.name, email: account.email },
    redirectUri: new URL(params["redirect_uri"] as string),
    identity: [...scopes].filter(isIdentityScope),
    resources: Object.fromEntries(
      resources.map((resource) => [resource, askable(client, scopesAt(origin, resource) ?? [], scopes)]),
    ),
  };
}

const askable = (client: Client, known: readonly Scope[], asked: ReadonlySet<string>): Scope[] => {
  const allowed = (client["permissions"] as string[] | undefined) ?? known;
  return known.filter((scope) => asked.has(scope) && allowed.includes(scope));
};

/** Adds it to what the client is allowed already, for 90 days from now; answers the grant's id. */
export async function allow(
  { ctx, provider }: Where,
  { userId }: SessionCaller,
  { client, identity, resources }: Consent,
): Promise<string> {
  const known = await findLiveGrant(ctx.db, userId, client.id, ctx.now());
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
