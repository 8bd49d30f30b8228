import type { Context } from "../../core/context.ts";
import { DAY_MS } from "../../core/dates.ts";
import { foldRunsBefore } from "./run-sums-queries.ts";

/** Far longer than the insert of a run takes to commit: no run of a folded day comes later. */
const MARGIN_MS = 3_600_000;

/** Adds the runs of past days to the sums of their products. No response of the API changes by it. */
export async function foldRuns(ctx: Pick<Context, "db" | "now">): Promise<void> {
  const now = ctx.now();
  const target = new Date(Math.floor((now.getTime() - MARGIN_MS) / DAY_MS) * DAY_MS);
  let folded: Date | null;
  do folded = await ctx.db.transaction().execute((tx) => foldRunsBefore(tx, { target, now }));
  while (folded !== null && folded < target);
}

export { reopenRun } from "./run-sums-queries.ts";
