import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";

/** Whether the account asks for a code at sign-in. */
export async function hasSecondFactor(_db: Queries, _userId: string): Promise<boolean> {
  return false;
}

/**
 * Whether this is a code of the account's app, or a backup code, that was never accepted before; then it never will be again.
 * Throws RATE_LIMIT_EXCEEDED while the account is locked after too many wrong ones.
 */
export async function acceptSecondFactor(_ctx: Context, _userId: string, _code: string): Promise<boolean> {
  return false;
}
