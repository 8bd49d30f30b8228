import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { sendMail } from "../../platform/email/mail.ts";
import { prefixOf } from "./api-key.ts";
import { expiringLetter } from "./letters.ts";
import { markTold } from "./queries.ts";

/** The shortest first: a key that is told of three days is not told of fourteen after a pause. */
const TOLD_DAYS_BEFORE = [3, 14];

/** Tells owners of keys that end soon: once per key and number of days, however many workers ask and rounds were missed. */
export async function tellOfExpiry(ctx: Context): Promise<void> {
  const now = ctx.now();
  for (const days of TOLD_DAYS_BEFORE) {
    await ctx.db.transaction().execute(async (tx) => {
      const until = daysAfter(now, days);
      for (const { name, lookup, expiresAt, email } of await markTold(tx, days, now, until)) {
        const prefix = prefixOf(ctx.config.environment, lookup);
        await sendMail(ctx, tx, email, expiringLetter({ name, prefix, expiresAt }));
      }
    });
  }
}
