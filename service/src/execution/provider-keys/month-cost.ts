import type { Context } from "../../core/context.ts";
import { countCalls } from "./queries.ts";

/** The first moment of the month in UTC: a budget counts one month. */
export const monthStartOf = (at: Date) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1));

/** Small batches, because each one locks the key for its other calls. */
const COUNT_BATCH = 1_000;

/** Counts the ended calls of the month for a new budget. The next call counts those that end meanwhile. */
export async function countMonthCost(ctx: Context, keyId: string): Promise<void> {
  let counted: number;
  do counted = await countCalls(ctx.db, keyId, monthStartOf(ctx.now()), COUNT_BATCH);
  while (counted === COUNT_BATCH);
}
