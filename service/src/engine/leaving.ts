import { askToCancelAllOf } from "../ai/forgetting.ts";
import type { LeavingReason } from "../ai/queries.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { lockRunsOf } from "./queries.ts";

/**
 * Of somebody who is banned or leaves: what runs ends, prompts too, and what waits never begins. The runs are locked first, in the
 * order of whoever drives one: neither waits for the other.
 */
export async function endAllRuns(ctx: Context, tx: Tx, userId: string, reason: LeavingReason): Promise<void> {
  await lockRunsOf(tx, userId);
  await askToCancelAllOf(ctx, tx, userId, reason);
}
