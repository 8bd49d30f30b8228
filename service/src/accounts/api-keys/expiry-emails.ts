import type { Context } from "../../core/context.ts";
import { daysAfter, toLongDate } from "../../core/dates.ts";
import { toId } from "../../core/ids.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
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
      for (const { id, userId, name, lookup, expiresAt } of await claimExpiringKeys(tx, days, now, until)) {
        const prefix = toKeyPrefix(ctx.config.environment, lookup);
        const notification = {
          userId,
          kind: "api_key.expiring" as const,
          subjectId: toId("key", id),
          data: { name, expiresAt: toLongDate(expiresAt) },
          occurrence: String(days),
        };
        await notifyAccount(ctx, tx, notification, keyExpiringEmail({ name, prefix, expiresAt }));
      }
    });
  }
}
