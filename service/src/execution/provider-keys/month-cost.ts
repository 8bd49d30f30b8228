import type { Context } from "../../core/context.ts";
import { countCalls } from "./queries.ts";

/** A budget is of a month, in UTC. */
export const monthStartOf = (at: Date) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1));

/** So few that nobody who calls with the key waits long for them. */
const COUNT_BATCH = 1_000;

/** Counts what the month's calls have cost, for a budget that is about to be set; what ends meanwhile is left to the next call. */
export async function countMonthCost(ctx: Context, keyId: string): Promise<void> {
  let counted: number;
  do counted = await countCalls(ctx.db, keyId, monthStartOf(ctx.now()), COUNT_BATCH);
  while (counted === COUNT_BATCH);
}
