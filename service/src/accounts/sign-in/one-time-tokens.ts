import { randomBytes } from "node:crypto";
import type { Context } from "../../core/context.ts";
import { digestOf } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import type { Queries } from "../../platform/db/database.ts";
import {
  consumeToken,
  consumeTokensForPurpose,
  deleteTokensOfUser,
  findActiveToken,
  insertToken,
} from "./queries.ts";

export type TokenPurpose = "magic-link" | "registration" | "two-factor" | "first-admin" | "social";

export interface OneTimeToken {
  email: string | null;
  userId: string | null;
  data: Record<string, unknown>;
}

interface MintTokenInput {
  purpose: TokenPurpose;
  email?: string;
  userId?: string;
  data?: Record<string, unknown>;
  lifetimeMs: number;
}

/** 256 random bits. The value is in the return value and is not stored. */
export async function mintOneTimeToken(ctx: Context, db: Queries, input: MintTokenInput): Promise<string> {
  const value = randomBytes(32).toString("base64url");
  const now = ctx.now();
  await insertToken(db, {
    digest: digestOf(value),
    purpose: input.purpose,
    email: input.email ?? null,
    userId: input.userId ?? null,
    data: JSON.stringify(input.data ?? {}),
    createdAt: now,
    expiresAt: new Date(now.getTime() + input.lifetimeMs),
  });
  return value;
}

/** Throws INVALID_TOKEN when the token is unknown, used or expired. Of parallel calls, one wins. */
export async function redeemOneTimeToken(
  ctx: Context,
  db: Queries,
  value: string,
  purposes: TokenPurpose[],
): Promise<OneTimeToken> {
  const token = await consumeToken(db, digestOf(value), purposes, ctx.now());
  if (!token) throw new ApiError("INVALID_TOKEN");
  return token;
}

/** Does not consume the token. Throws INVALID_TOKEN as redeeming does. */
export async function mustFindOneTimeToken(
  ctx: Context,
  value: string,
  purpose: TokenPurpose,
): Promise<OneTimeToken> {
  const token = await findActiveToken(ctx.db, digestOf(value), purpose, ctx.now());
  if (!token) throw new ApiError("INVALID_TOKEN");
  return token;
}

export const deleteOneTimeTokens = (db: Queries, owner: { userId: string; email: string }) =>
  deleteTokensOfUser(db, owner);

/** A new token replaces the unused ones of its purpose. */
export const invalidateOneTimeTokens = (ctx: Context, db: Queries, purpose: TokenPurpose) =>
  consumeTokensForPurpose(db, purpose, ctx.now());
