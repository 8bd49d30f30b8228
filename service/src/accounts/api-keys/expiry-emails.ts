import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { toKeyPrefix } from "./api-key.ts";
import { keyExpiringEmail } from "./emails.ts";
import { claimExpiringKeys } from "./queries.ts";

/** Shortest first: after a pause, a key with three days left gets no email about fourteen. */
const REMINDER_DAYS = [3, 14];

/** One email for each key and number of days, also when several workers run the job or runs were missed. */
export async function sendKeyExpiryEmails(ctx: Context): Promise<void> {
  const now = ctx.now();
  for (const days of REMINDER_DAYS) {
    await ctx.db.transaction().execute(async (tx) => {
      const until = daysAfter(now, days);
      for (const { name, lookup, expiresAt, email } of await claimExpiringKeys(tx, days, now, until)) {
        const prefix = toKeyPrefix(ctx.config.environment, lookup);
        await queueEmail(ctx, tx, email, keyExpiringEmail({ name, prefix, expiresAt }));
      }
    });
  }
}
