import type { Context } from "../../core/context.ts";
import { countCalls } from "./queries.ts";

/** A budget is of a month, in UTC. */
export const monthOf = (at: Date) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), 1));

/** So few that nobody who calls with the key waits long for them. */
const COUNTED_AT_ONCE = 1_000;

/** Counts what the month's calls have cost, for a budget that is about to be set; what ends meanwhile is left to the next call. */
export async function countSpent(ctx: Context, keyId: string): Promise<void> {
  let counted: number;
  do counted = await countCalls(ctx.db, keyId, monthOf(ctx.now()), COUNTED_AT_ONCE);
  while (counted === COUNTED_AT_ONCE);
}
