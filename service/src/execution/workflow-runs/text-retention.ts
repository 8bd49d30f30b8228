import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { minUuidAt } from "../../core/ids.ts";
import { eraseRunTexts } from "./queries.ts";

/** The history stores its texts for the same time. */
const RETENTION_DAYS = 30;

/** Erases the inputs and outputs of ended runs and of their steps; the rows stay. */
export async function eraseOldRunTexts(ctx: Context): Promise<void> {
  const before = minUuidAt(daysAfter(ctx.now(), -RETENTION_DAYS));
  while ((await eraseRunTexts(ctx.db, before)) > 0);
}
