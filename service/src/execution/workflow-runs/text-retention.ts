import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { minUuidAt } from "../../core/ids.ts";
import { eraseRunTexts } from "./queries.ts";

/** As long as the history keeps its own. */
const RETENTION_DAYS = 30;

/** Forgets what runs that ended were begun with, and what their steps gave; that they ran stays. */
export async function eraseOldRunTexts(ctx: Context): Promise<void> {
  const before = minUuidAt(daysAfter(ctx.now(), -RETENTION_DAYS));
  while ((await eraseRunTexts(ctx.db, before)) > 0);
}
