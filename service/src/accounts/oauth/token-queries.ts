import type { Plan, Quota, Role } from "@stoa/contract";
import { sql } from "kysely";
import type { AdapterPayload } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";

export type TokenKind = "AccessToken" | "ClientCredentials" | "RefreshToken" | "AuthorizationCode";

export interface NewToken {
  digest: Buffer;
  kind: TokenKind;
  /** null: the owner of the client. */
  userId: string | null;
  clientId: string;
  grantId: string | null;
  audience: string | null;
  scope: string;
  payload: string;
  createdAt: Date;
  expiresAt: Date;
}

export const insertToken = (db: Queries, { userId, ...token }: NewToken) =>
  db
    .insertInto("oauthTokens")
    .values({
      ...token,
      userId: userId ?? sql<string>`(select owner_id from oauth_clients where id = ${token.clientId})`,
    })
    .execute();

export interface TokenRow {
  payload: AdapterPayload;
  expiresAt: Date;
  consumedAt: Date | null;
}

export const findActiveToken = (db: Queries, kind: TokenKind, digest: Buffer) =>
  db
    .selectFrom("oauthUsableTokens")
    .select(["payload", "expiresAt", "consumedAt"])
    .where("digest", "=", digest)
    .where("kind", "=", kind)
    .$castTo<TokenRow>()
    .executeTakeFirst();

/** Of parallel calls, one returns true. */
export async function consumeToken(db: Queries, digest: Buffer, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("oauthTokens")
    .set({ consumedAt: now })
    .where("digest", "=", digest)
    .where("consumedAt", "is", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export const deleteToken = (db: Queries, digest: Buffer) =>
  db.deleteFrom("oauthTokens").where("digest", "=", digest).execute();

export const deleteTokensOfGrant = (db: Queries, kind: TokenKind, grantId: string) =>
  db.deleteFrom("oauthTokens").where("grantId", "=", grantId).where("kind", "=", kind).execute();

export const deleteTokensOfUser = (db: Queries, userId: string) =>
  db.deleteFrom("oauthTokens").where("userId", "=", userId).execute();

export interface BearerRow {
  userId: string;
  grantId: string | null;
  scope: string;
  role: Role;
  plan: Plan;
  quota: Quota[] | null;
}

/** Runs on each request with a token, hence a named statement. */
const FIND_BEARER = {
  name: "find_oauth_bearer",
  text: `select user_id as "userId", grant_id as "grantId", scope, role, plan, quota
           from oauth_usable_tokens
          where digest = $1 and kind in ('AccessToken', 'ClientCredentials') and audience = $2 and expires_at > $3`,
};

export async function findBearer({ pool }: Context, digest: Buffer, audience: string, now: Date) {
  const { rows } = await pool.query<BearerRow>({ ...FIND_BEARER, values: [digest, audience, now] });
  return rows[0];
}

/** Used codes and tokens stay a day longer, so that a second use is detected. */
export async function deleteExpiredRows(db: Queries, over: { flows: Date; tokens: Date }): Promise<void> {
  await db.deleteFrom("oauthFlows").where("expiresAt", "<", over.flows).execute();
  await db.deleteFrom("oauthTokens").where("expiresAt", "<", over.tokens).execute();
  await db.deleteFrom("oauthGrants").where("expiresAt", "<", over.tokens).execute();
}
