import { type AccountRow, lockAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { PayoutSchedule } from "../../core/config/config.ts";
import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import {
  type RunTransaction,
  runSchedule,
  type Schedule,
  ScheduledRunEnded,
} from "../../platform/jobs/schedule.ts";
import { arePayoutsDisabled, findPayoutDestination } from "../charges/payout-account.ts";
import { type Balance, balancesOf } from "../ledger/balances.ts";
import { minimumMinor, payableAmount } from "./balance.ts";
import { createPayout } from "./payout-creation.ts";
import { trySubmitPayout } from "./payout-submission.ts";
import { listPayable, type PayoutRow } from "./queries.ts";

const HOUR = 6;
const MONDAY = 1;

const isPayoutDay: Record<PayoutSchedule, (day: Date) => boolean> = {
  daily: () => true,
  weekly: (day) => day.getUTCDay() === MONDAY,
  monthly: (day) => day.getUTCDate() === 1,
};

/** 06:00 UTC each day, on Mondays, or on the first of a month. */
export function nextPayoutTime(schedule: PayoutSchedule, after: Date): Date {
  const scheduledFor = new Date(after);
  scheduledFor.setUTCHours(HOUR, 0, 0, 0);
  while (scheduledFor <= after || !isPayoutDay[schedule](scheduledFor))
    scheduledFor.setUTCDate(scheduledFor.getUTCDate() + 1);
  return scheduledFor;
}

/** Submits payouts after all due runs: of several missed runs, the first creates the payouts. */
export async function payOutBySchedule(ctx: Context, schedule: PayoutSchedule): Promise<void> {
  const created: PayoutRow[] = [];
  const job: Schedule = {
    name: "pay-out",
    next: (after) => nextPayoutTime(schedule, after),
    run: (scheduledFor, inTransaction) =>
      createScheduledPayouts(ctx, {
        scheduledFor,
        next: nextPayoutTime(schedule, scheduledFor),
        inTransaction,
        created,
      }),
  };
  try {
    await runSchedule(ctx, job);
  } finally {
    for (const payout of created) await trySubmitPayout(ctx, payout);
  }
}

interface PayoutBatch {
  scheduledFor: Date;
  next: Date;
  inTransaction: RunTransaction;
  /** Output: the created payouts. */
  created: PayoutRow[];
}

/** A failed payout does not stop the other sellers. The job is retried until the next scheduled time, which pays what is left. */
async function createScheduledPayouts(
  ctx: Context,
  { scheduledFor, next, inTransaction, created }: PayoutBatch,
): Promise<void> {
  const failures: unknown[] = [];
  for (const { sellerId, currency } of await listPayable(ctx.db, scheduledFor)) {
    try {
      if (await arePayoutsDisabled(ctx, sellerId)) continue;
      const payout = await inTransaction((tx) =>
        createPayoutOfAvailable(ctx, tx, { sellerId, currency, scheduledFor }),
      );
      if (payout) created.push(payout);
    } catch (error) {
      if (error instanceof ScheduledRunEnded) throw error;
      ctx.log.error(
        { sellerId: toUserId(sellerId), currency, err: error },
        "a scheduled payout could not be created",
      );
      failures.push(error);
    }
  }
  if (failures.length > 0 && ctx.now() < next) throw failures[0];
}

/** null: nothing to pay, or no payout account; the balance waits for the next run. */
async function createPayoutOfAvailable(
  ctx: Context,
  tx: Tx,
  { sellerId, currency, scheduledFor }: { sellerId: string; currency: string; scheduledFor: Date },
): Promise<PayoutRow | null> {
  const seller = await lockAccount(tx, sellerId);
  // The earnings of a banned seller may belong to the buyers.
  if (!seller || seller.bannedAt) return null;
  const balances = await balancesOf(tx, sellerId, ctx.now());
  const balance = balances.find((one) => one.currency === currency);
  const destination = await findPayoutDestination(ctx, tx, sellerId);
  if (!destination || !balance) return null;
  const amountMinor = payableAmount(ctx, currency, balance.availableMinor);
  if (amountMinor < minimumOf(seller, balance)) return null;
  return createPayout(ctx, tx, { sellerId, balance, amountMinor, destination, scheduledFor });
}

/** A closed account has no later sales, so its last balance has no minimum. */
function minimumOf({ closedAt }: AccountRow, { currency, pendingMinor, reservedMinor }: Balance): bigint {
  const isLast = closedAt !== null && pendingMinor === 0n && reservedMinor === 0n;
  return isLast ? 1n : minimumMinor(currency);
}
