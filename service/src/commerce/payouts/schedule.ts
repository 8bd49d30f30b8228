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

/** The first slot after a moment: 06:00 UTC each day, on Mondays, or on the first of a month. */
export function nextPayoutTime(schedule: PayoutSchedule, after: Date): Date {
  const slot = new Date(after);
  slot.setUTCHours(HOUR, 0, 0, 0);
  while (slot <= after || !isPayoutDay[schedule](slot)) slot.setUTCDate(slot.getUTCDate() + 1);
  return slot;
}

/**
 * Pays everybody what is available, once in each slot. The provider is asked when all slots that are due have been carried out: of
 * several missed ones the first draws what there is, and the others find it on its way.
 */
export async function payOutBySchedule(ctx: Context, schedule: PayoutSchedule): Promise<void> {
  const drawn: PayoutRow[] = [];
  const job: Schedule = {
    name: "pay-out",
    next: (after) => nextPayoutTime(schedule, after),
    run: (slot, piece) =>
      createScheduledPayouts(ctx, { slot, next: nextPayoutTime(schedule, slot), piece, drawn }),
  };
  try {
    await runSchedule(ctx, job);
  } finally {
    for (const payout of drawn) await trySubmitPayout(ctx, payout);
  }
}

interface PayoutBatch {
  slot: Date;
  next: Date;
  piece: RunTransaction;
  /** Gets what is drawn. */
  drawn: PayoutRow[];
}

/**
 * One whose payout cannot be drawn holds up nobody else, and no slot after this one: it is tried again, as a job that fails, until the
 * next slot is due, which pays what this one left. Whose money matures meanwhile waits for their turn.
 */
async function createScheduledPayouts(
  ctx: Context,
  { slot, next, piece, drawn }: PayoutBatch,
): Promise<void> {
  const failures: unknown[] = [];
  for (const { sellerId, currency } of await listPayable(ctx.db, slot)) {
    try {
      if (await arePayoutsDisabled(ctx, sellerId)) continue;
      const payout = await piece((tx) => createPayoutOfAvailable(ctx, tx, { sellerId, currency, slot }));
      if (payout) drawn.push(payout);
    } catch (error) {
      if (error instanceof ScheduledRunEnded) throw error;
      ctx.log.error({ sellerId: toUserId(sellerId), currency, err: error }, "a payout could not be drawn");
      failures.push(error);
    }
  }
  if (failures.length > 0 && ctx.now() < next) throw failures[0];
}

/** null when there is nothing to pay, or no way to: it waits for the next slot. */
async function createPayoutOfAvailable(
  ctx: Context,
  tx: Tx,
  { sellerId, currency, slot }: { sellerId: string; currency: string; slot: Date },
): Promise<PayoutRow | null> {
  const seller = await lockAccount(tx, sellerId);
  // What is earned by somebody who was shut out may belong to their buyers.
  if (!seller || seller.bannedAt) return null;
  const balances = await balancesOf(tx, sellerId, ctx.now());
  const balance = balances.find((one) => one.currency === currency);
  const destination = await findPayoutDestination(ctx, tx, sellerId);
  if (!destination || !balance) return null;
  const amountMinor = payableAmount(ctx, currency, balance.availableMinor);
  if (amountMinor < minimumOf(seller, balance)) return null;
  return createPayout(ctx, tx, { sellerId, balance, amountMinor, destination, slot });
}

/** Whoever has left has no later sales to wait for: the last of it is paid, however little. */
function minimumOf({ closedAt }: AccountRow, { currency, pendingMinor, reservedMinor }: Balance): bigint {
  const isLast = closedAt !== null && pendingMinor === 0n && reservedMinor === 0n;
  return isLast ? 1n : minimumMinor(currency);
}
