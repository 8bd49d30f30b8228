import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { AccountCancelReason } from "../executions/queries.ts";
import { cancelRunsOfUser } from "../prompt-runs/erase-runs.ts";
import { lockRunsOfUser } from "./queries.ts";

/**
 * Of somebody who is banned or leaves: what runs ends, prompts too, and what waits never begins. The runs are locked first, in the
 * order of whoever drives one: neither waits for the other.
 */
export async function cancelAllRuns(
  ctx: Context,
  tx: Tx,
  userId: string,
  reason: AccountCancelReason,
): Promise<void> {
  await lockRunsOfUser(tx, userId);
  await cancelRunsOfUser(ctx, tx, userId, reason);
}
