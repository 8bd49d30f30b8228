import { randomBytes } from "node:crypto";
import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { digestOf } from "../digest.ts";
import { ApiError } from "../errors.ts";
import { forgetOldSessions } from "../sessions/sessions.ts";
import { LONGEST_WINDOW_SECONDS } from "./attempts.ts";
import { deleteAttemptsBefore, deleteTokensBefore } from "./queries.ts";

export type TokenPurpose = "magic-link" | "registration" | "two-factor" | "first-admin" | "social";

export interface OneTimeToken {
  email: string | null;
  userId: string | null;
  data: Record<string, unknown>;
}

interface MintToken {
  purpose: TokenPurpose;
  email?: string;
  userId?: string;
  data?: Record<string, unknown>;
  lifetimeMs: number;
}

/** Makes a token of 256 random bits; its value is in this answer and nowhere else. */
export async function mintOneTimeToken(ctx: Context, db: Queries, wish: MintToken): Promise<string> {
  const value = randomBytes(32).toString("base64url");
  const now = ctx.now();
  await db
    .insertInto("one_time_tokens")
    .values({
      digest: digestOf(value),
      purpose: wish.purpose,
      email: wish.email ?? null,
      user_id: wish.userId ?? null,
      data: JSON.stringify(wish.data ?? {}),
      created_at: now,
      expires_at: new Date(now.getTime() + wish.lifetimeMs),
    })
    .execute();
  return value;
}

/** Uses a token up. Unknown, used and expired alike are INVALID_TOKEN; of parallel calls one statement lets one win. */
export async function redeemOneTimeToken(
  ctx: Context,
  db: Queries,
  value: string,
  purposes: TokenPurpose[],
): Promise<OneTimeToken & { purpose: TokenPurpose }> {
  const now = ctx.now();
  const row = await db
    .updateTable("one_time_tokens")
    .set({ used_at: now })
    .where("digest", "=", digestOf(value))
    .where("purpose", "in", purposes)
    .where("used_at", "is", null)
    .where("expires_at", ">", now)
    .returning(["email", "user_id as userId", "data", "purpose"])
    .executeTakeFirst();
  if (!row) throw new ApiError("INVALID_TOKEN");
  return row as OneTimeToken & { purpose: TokenPurpose };
}

/** Whose token this is, without using it up; INVALID_TOKEN as when redeeming. */
export async function mustFindOneTimeToken(
  ctx: Context,
  value: string,
  purpose: TokenPurpose,
): Promise<OneTimeToken> {
  const row = await ctx.db
    .selectFrom("one_time_tokens")
    .select(["email", "user_id as userId", "data"])
    .where("digest", "=", digestOf(value))
    .where("purpose", "=", purpose)
    .where("used_at", "is", null)
    .where("expires_at", ">", ctx.now())
    .executeTakeFirst();
  if (!row) throw new ApiError("INVALID_TOKEN");
  return row as OneTimeToken;
}

/** What nobody can use any more: expired tokens, attempts that count no longer, sessions that ended long ago. */
export async function forgetOldTokens(ctx: Context): Promise<void> {
  const now = ctx.now();
  await deleteTokensBefore(ctx.db, now);
  await deleteAttemptsBefore(ctx.db, new Date(now.getTime() - LONGEST_WINDOW_SECONDS * 1000));
  await forgetOldSessions(ctx);
}

/** What was sent to somebody opens nothing any more. */
export const forgetTokensOf = (db: Queries, { userId, email }: { userId: string; email: string }) =>
  db
    .deleteFrom("one_time_tokens")
    .where((row) =>
      row.or([row("user_id", "=", userId), row(row.fn("lower", ["email"]), "=", email.toLowerCase())]),
    )
    .execute();

/** Unused tokens of a purpose are worth nothing any more: a new one takes their place. */
export const withdrawTokens = (ctx: Context, db: Queries, purpose: TokenPurpose) =>
  db
    .updateTable("one_time_tokens")
    .set({ used_at: ctx.now() })
    .where("purpose", "=", purpose)
    .where("used_at", "is", null)
    .execute();
