import { type Adapter, type AdapterPayload, errors } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { networkOf } from "../../core/network.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { unusedMethods } from "./adapter-defaults.ts";
import { isClientId } from "./client-id.ts";
import { type ClientRow, findActiveClient, insertRegisteredClient } from "./queries.ts";
import { isLoopbackUri } from "./redirect-uris.ts";
import { requestSource } from "./request-context.ts";

const MAX_REGISTRATIONS_PER_NETWORK = 20;
const PERIOD_MS = 3_600_000;

/** Clients that users created, and clients that registered themselves. */
export const clientAdapter = (ctx: Context): Adapter => ({
  ...unusedMethods,
  async find(id) {
    const client = isClientId(id) ? await findActiveClient(ctx.db, id) : undefined;
    return client && toClientMetadata(client);
  },
  /** Only dynamic registration calls this, with metadata that registration.ts has restricted. */
  async upsert(id, metadata) {
    const source = requestSource();
    const now = ctx.now();
    await ctx.db.transaction().execute(async (tx) => {
      const isWritten = await insertRegisteredClient(tx, {
        id,
        name: metadata.client_name!,
        redirectUris: [...(metadata.redirect_uris ?? [])],
        postLogoutRedirectUris: [...(metadata.post_logout_redirect_uris ?? [])],
        grantTypes: [...(metadata.grant_types ?? [])],
        idTokenAlgorithm: metadata.id_token_signed_response_alg!,
        network: networkOf(source.ip),
        now,
        limit: { since: new Date(now.getTime() - PERIOD_MS), count: MAX_REGISTRATIONS_PER_NETWORK },
      });
      if (!isWritten) throw tooManyRegistrations();
      await recordAudit(ctx, tx, {
        actorId: null,
        action: "oauth_client.registered",
        target: { type: "oauth_client", id },
        source,
        details: { name: metadata.client_name, redirectUris: metadata.redirect_uris },
      });
    });
  },
});

const tooManyRegistrations = () =>
  Object.assign(
    new errors.CustomOIDCProviderError(
      "slow_down",
      "too many clients were registered from your network; try again in an hour",
    ),
    { status: 429, statusCode: 429 },
  );

/**
 * Metadata names of RFC 7591. The digest takes the place of the secret; provider.ts compares digests. Only a public
 * client is `native`, which may use any port of a loopback address.
 */
function toClientMetadata(client: ClientRow): AdapterPayload {
  const isPublic = client.secretDigest === null;
  return {
    client_id: client.id,
    client_name: client.name,
    redirect_uris: client.redirectUris,
    post_logout_redirect_uris: client.postLogoutRedirectUris,
    grant_types: client.grantTypes,
    response_types: client.grantTypes.includes("authorization_code") ? ["code"] : [],
    id_token_signed_response_alg: client.idTokenAlgorithm,
    application_type: isPublic && client.redirectUris.some(isLoopbackUri) ? "native" : "web",
    ...(isPublic
      ? { token_endpoint_auth_method: "none" }
      : {
          token_endpoint_auth_method: "client_secret_basic",
          client_secret: client.secretDigest!.toString("base64url"),
        }),
    ...(client.permissions && { permissions: client.permissions }),
  } as AdapterPayload;
}
