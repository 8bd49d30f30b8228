import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { minUuidAt } from "../../core/ids.ts";
import { eraseTextsOfSome } from "./queries.ts";

/** As long as the history keeps its own. */
const TEXTS_KEPT_DAYS = 30;

/** Forgets what runs that ended were begun with, and what their steps gave; that they ran stays. */
export async function forgetOldRuns(ctx: Context): Promise<void> {
  const before = minUuidAt(daysAfter(ctx.now(), -TEXTS_KEPT_DAYS));
  while ((await eraseTextsOfSome(ctx.db, before)) > 0);
}
