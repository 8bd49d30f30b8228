import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { toKeyPrefix } from "./api-key.ts";
import { keyExpiringEmail } from "./emails.ts";
import { claimExpiringKeys } from "./queries.ts";

/** The shortest first: a key that is told of three days is not told of fourteen after a pause. */
const REMINDER_DAYS = [3, 14];

/** Tells owners of keys that end soon: once per key and number of days, however many workers ask and rounds were missed. */
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
