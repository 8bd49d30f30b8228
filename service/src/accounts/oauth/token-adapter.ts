import { type Adapter, type AdapterPayload, errors } from "oidc-provider";
import type { Context } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { toUuid } from "../../core/ids.ts";
import { FOREIGN_KEY_VIOLATION, hasSqlState } from "../../platform/db/sql-state.ts";
import { fromSeconds, toSeconds, unusedMethods } from "./adapter-defaults.ts";
import { updateGrantLastUsed } from "./queries.ts";
import {
  consumeToken,
  deleteToken,
  deleteTokensOfGrant,
  findActiveToken,
  insertToken,
  type TokenKind,
} from "./token-queries.ts";

/**
 * A second use within this time is refused and nothing more: requests of an honest client may cross, or an answer get
 * lost. A later one is a stolen token and deletes the grant.
 */
const REUSE_LEEWAY_MS = 10_000;

/** Stored by digest, valid while the account may sign in. */
export const tokenAdapter = (ctx: Context, kind: TokenKind): Adapter => ({
  ...unusedMethods,
  async upsert(value, payload) {
    await insertTokenOrFail(ctx, kind, value, payload);
    if (kind === "AccessToken" && payload.grantId)
      await updateGrantLastUsed(ctx.db, payload.grantId, ctx.now());
  },
  async find(value) {
    const token = await findActiveToken(ctx.db, kind, digestOf(value));
    if (!token) return undefined;
    const isReuse =
      token.consumedAt !== null && ctx.now().getTime() - token.consumedAt.getTime() >= REUSE_LEEWAY_MS;
    return {
      ...token.payload,
      jti: value,
      exp: toSeconds(token.expiresAt),
      ...(isReuse && { consumed: toSeconds(token.consumedAt!) }),
    };
  },
  async consume(value) {
    if (!(await consumeToken(ctx.db, digestOf(value), ctx.now())))
      throw new errors.InvalidGrant("used already");
  },
  async destroy(value) {
    await deleteToken(ctx.db, digestOf(value));
  },
  async revokeByGrantId(grantId) {
    await deleteTokensOfGrant(ctx.db, kind, grantId);
  },
});

/** The value, which oidc-provider calls `jti`, is not stored. */
async function insertTokenOrFail(ctx: Context, kind: TokenKind, value: string, payload: AdapterPayload) {
  const { jti: _, exp, ...stored } = payload;
  try {
    await insertToken(ctx.db, {
      digest: digestOf(value),
      kind,
      userId: payload.accountId === undefined ? null : toUuid("usr", payload.accountId),
      clientId: payload.clientId!,
      grantId: payload.grantId ?? null,
      audience: readAudience(payload),
      scope: payload.scope ?? "",
      payload: JSON.stringify(stored),
      createdAt: ctx.now(),
      expiresAt: fromSeconds(exp!),
    });
  } catch (error) {
    // Its grant or client was deleted meanwhile.
    if (hasSqlState(error, FOREIGN_KEY_VIOLATION)) throw new errors.InvalidGrant("taken back");
    throw error;
  }
}

const readAudience = ({ aud }: AdapterPayload): string | null => (typeof aud === "string" ? aud : null);
