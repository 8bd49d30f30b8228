import type { Grant } from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import { listGrantScopes } from "./grant-adapter.ts";
import { deleteOwnGrant, type GrantRow, listActiveGrants } from "./queries.ts";
import { listHosts } from "./redirect-uris.ts";

const toGrant = (grant: GrantRow): Grant => ({
  id: toId("grant", grant.id),
  client: {
    clientId: grant.clientId,
    name: grant.clientName,
    redirectHosts: listHosts(grant.redirectUris),
  },
  scopes: listGrantScopes(grant.allowed),
  createdAt: grant.createdAt.toISOString(),
  lastUsedAt: grant.lastUsedAt?.toISOString() ?? null,
  expiresAt: grant.expiresAt.toISOString(),
});

export async function listGrants(ctx: Context, caller: SessionCaller, query: Paging) {
  return mapPage(await listActiveGrants(ctx.db, caller.userId, ctx.now(), query), toGrant);
}

/** Its tokens are deleted with it. */
export async function revokeGrant(
  ctx: Context,
  caller: SessionCaller,
  grantId: string,
  source: RequestSource,
) {
  const id = toUuid("grant", grantId);
  return ctx.db.transaction().execute(async (tx) => {
    const grant = id ? await deleteOwnGrant(tx, caller.userId, id) : undefined;
    if (!grant) throw new ApiError("GRANT_NOT_FOUND");
    await recordAudit(ctx, tx, {
      actorId: caller.userId,
      action: "oauth_grant.revoked",
      target: { type: "oauth_grant", id: grantId },
      source,
      details: { userId: toId("usr", caller.userId), clientId: grant.clientId },
    });
    return { id: grantId, deleted: true as const };
  });
}
