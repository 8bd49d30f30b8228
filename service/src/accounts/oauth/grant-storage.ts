import type { Adapter, AdapterPayload } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { record } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { gone } from "./consent.ts";
import { grantLetter } from "./letters.ts";
import {
  deleteGrant,
  findAccount,
  findGrant,
  findLiveGrant,
  findUsableClient,
  type GrantRow,
  lockClient,
  putGrant,
} from "./queries.ts";
import { hostsOf } from "./redirects.ts";
import { fromSeconds, toSeconds, unused } from "./stored.ts";
import { visitSource } from "./visit.ts";

/** What people allowed. Its id is no secret; its end takes every token along. */
export const grantStorage = (ctx: Context): Adapter => ({
  ...unused,
  async upsert(id, payload) {
    const userId = toUuid("usr", payload.accountId!)!;
    const { openid, resources } = payload;
    await ctx.db.transaction().execute(async (tx) => {
      const known = await mustBeTheOnlyOne(ctx, tx, id, userId, payload.clientId!);
      await putGrant(tx, {
        id,
        user_id: userId,
        client_id: payload.clientId!,
        allowed: JSON.stringify({ openid, resources }),
        created_at: ctx.now(),
        expires_at: fromSeconds(payload.exp!),
      });
      await record(ctx, tx, {
        actorId: userId,
        action: "oauth_grant.given",
        target: { type: "oauth_grant", id: toId("grant", id) },
        source: visitSource(),
        details: { clientId: payload.clientId, openid, resources },
      });
      await mailIfWider(ctx, tx, known, {
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
  /** At the wish of the client, or because a code or refresh token of it was used a second time. */
  async destroy(id) {
    await ctx.db.transaction().execute(async (tx) => {
      const grant = await deleteGrant(tx, id);
      if (!grant) return;
      await record(ctx, tx, {
        actorId: null,
        action: "oauth_grant.revoked",
        target: { type: "oauth_grant", id: toId("grant", id) },
        source: visitSource(),
        details: { userId: toId("usr", grant.userId), clientId: grant.clientId },
      });
    });
  },
});

/** A second click on the same button, or another tab, must not leave somebody two grants to take back. */
async function mustBeTheOnlyOne(ctx: Context, tx: Tx, id: string, userId: string, clientId: string) {
  const client = await lockClient(tx, clientId);
  const live = await findLiveGrant(tx, userId, clientId, ctx.now());
  if (!client || (live && live.id !== id)) throw gone();
  return live;
}

interface Given {
  userId: string;
  clientId: string;
  allowed: GrantRow["allowed"];
}

export function scopesIn({ openid, resources }: GrantRow["allowed"]): string[] {
  const lists = [openid?.scope ?? "", ...Object.values(resources ?? {})];
  return [...new Set(lists.flatMap((list) => list.split(" ")))].filter((scope) => scope !== "");
}

/** A client that registered itself asks at every connection: only what adds a scope is worth an email. */
async function mailIfWider(ctx: Context, tx: Tx, known: GrantRow | undefined, given: Given): Promise<void> {
  const scopes = scopesIn(given.allowed);
  const before = known ? scopesIn(known.allowed) : [];
  if (scopes.every((scope) => before.includes(scope))) return;
  const account = await findAccount(tx, given.userId);
  const client = await findUsableClient(tx, given.clientId);
  if (!account || !client) return;
  const host = hostsOf(client.redirectUris).join(", ");
  await sendMail(ctx, tx, account.email, grantLetter(ctx, { name: client.name, host, scopes }));
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
