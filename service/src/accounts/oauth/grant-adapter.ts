import type { Adapter, AdapterPayload } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { requireUuid, toId } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import { fromSeconds, toSeconds, unusedMethods } from "./adapter-defaults.ts";
import { interactionExpired } from "./consent.ts";
import { grantCreatedEmail } from "./emails.ts";
import {
  deleteGrant,
  findActiveClient,
  findActiveGrant,
  findGrant,
  type GrantRow,
  lockClient,
  upsertGrant,
} from "./queries.ts";
import { listHosts } from "./redirect-uris.ts";
import { requestSource } from "./request-context.ts";

/** The id of a grant is no secret. Deleting a grant deletes its tokens. */
export const grantAdapter = (ctx: Context): Adapter => ({
  ...unusedMethods,
  async upsert(id, payload) {
    const userId = requireUuid("usr", payload.accountId!);
    const { openid, resources } = payload;
    await ctx.db.transaction().execute(async (tx) => {
      const known = await mustBeOnlyActiveGrant(ctx, tx, id, userId, payload.clientId!);
      await upsertGrant(tx, {
        id,
        userId,
        clientId: payload.clientId!,
        allowed: JSON.stringify({ openid, resources }),
        createdAt: ctx.now(),
        expiresAt: fromSeconds(payload.exp!),
      });
      await recordAudit(ctx, tx, {
        actorId: userId,
        action: "oauth_grant.given",
        target: { type: "oauth_grant", id: toId("grant", id) },
        source: requestSource(),
        details: { clientId: payload.clientId, openid, resources },
      });
      await notifyOfAddedScopes(ctx, tx, known, {
        id,
        userId,
        clientId: payload.clientId!,
        allowed: { openid, resources } as GrantRow["allowed"],
      });
    });
  },
  async find(id) {
    const grant = await findGrant(ctx.db, id);
    return grant && toPayload(grant);
  },
  /** Called when the client revokes a token, or when a code or refresh token is used a second time. */
  async destroy(id) {
    await ctx.db.transaction().execute(async (tx) => {
      const grant = await deleteGrant(tx, id);
      if (!grant) return;
      await recordAudit(ctx, tx, {
        actorId: null,
        action: "oauth_grant.revoked",
        target: { type: "oauth_grant", id: toId("grant", id) },
        source: requestSource(),
        details: { userId: toId("usr", grant.userId), clientId: grant.clientId },
      });
    });
  },
});

/** A double click or a second tab must not create two grants. */
async function mustBeOnlyActiveGrant(ctx: Context, tx: Tx, id: string, userId: string, clientId: string) {
  const client = await lockClient(tx, clientId);
  const live = await findActiveGrant(tx, userId, clientId, ctx.now());
  if (!client || (live && live.id !== id)) throw interactionExpired();
  return live;
}

interface GrantedAccess {
  id: string;
  userId: string;
  clientId: string;
  allowed: GrantRow["allowed"];
}

export function listGrantScopes({ openid, resources }: GrantRow["allowed"]): string[] {
  const lists = [openid?.scope ?? "", ...Object.values(resources ?? {})];
  return [...new Set(lists.flatMap((list) => list.split(" ")))].filter((scope) => scope !== "");
}

/** A self-registered client asks at each connection. Only new scopes are worth a notification. */
async function notifyOfAddedScopes(
  ctx: Context,
  tx: Tx,
  known: GrantRow | undefined,
  access: GrantedAccess,
): Promise<void> {
  const scopes = listGrantScopes(access.allowed);
  const before = known ? listGrantScopes(known.allowed) : [];
  if (scopes.every((scope) => before.includes(scope))) return;
  const client = await findActiveClient(tx, access.clientId);
  if (!client) return;
  const host = listHosts(client.redirectUris).join(", ");
  const notification = {
    userId: access.userId,
    kind: "oauth_grant.created" as const,
    subjectId: toId("grant", access.id),
    data: { name: client.name, scopes: scopes.join(", ") },
    occurrence: ctx.newId(),
  };
  await notifyAccount(ctx, tx, notification, grantCreatedEmail(ctx, { name: client.name, host, scopes }));
}

const toPayload = (grant: GrantRow): AdapterPayload => ({
  ...grant.allowed,
  kind: "Grant",
  jti: grant.id,
  accountId: toId("usr", grant.userId),
  clientId: grant.clientId,
  iat: toSeconds(grant.createdAt),
  exp: toSeconds(grant.expiresAt),
});
