import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type AccountCancelReason, requestCancelByUser } from "../executions/queries.ts";
import { lockRunsOfUser } from "./queries.ts";

/**
 * Cancels all runs of an account that is banned or closed. Locks the runs first, in the order in which drivers lock them, so that
 * no deadlock can occur.
 */
export async function cancelAllRuns(
  ctx: Context,
  tx: Tx,
  userId: string,
  reason: AccountCancelReason,
): Promise<void> {
  await lockRunsOfUser(tx, userId);
  await requestCancelByUser(tx, userId, reason, ctx.now());
}
