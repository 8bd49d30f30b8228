import type { Context } from "../../core/context.ts";
import { dayOf, daysAfter } from "../../core/dates.ts";
import { deleteTriesBefore, deleteVisitorsBefore } from "./queries.ts";

const RETENTION_DAYS = 62;

/** The sums of days stay; digests of visitors are needed on their day alone. */
export async function deleteOldTries(ctx: Context): Promise<void> {
  const now = ctx.now();
  await deleteVisitorsBefore(ctx.db, dayOf(daysAfter(now, -1)));
  await deleteTriesBefore(ctx.db, daysAfter(now, -RETENTION_DAYS));
}
