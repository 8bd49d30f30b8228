import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type AccountCancelReason, requestCancelByUser } from "../executions/queries.ts";
import { lockRunsOfUser } from "./queries.ts";

/** Cancels all runs of a banned or closed account. Locks the runs first, in the order of their drivers, to prevent deadlocks. */
export async function cancelAllRuns(
  ctx: Context,
  tx: Tx,
  userId: string,
  reason: AccountCancelReason,
): Promise<void> {
  await lockRunsOfUser(tx, userId);
  await requestCancelByUser(tx, userId, reason, ctx.now());
}
