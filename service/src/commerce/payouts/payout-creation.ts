import type { Context } from "../../core/context.ts";
import { dayOf, daysAfter } from "../../core/dates.ts";
import { failPoint } from "../../core/fail-points.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { Balance } from "../ledger/balances.ts";
import { postPayoutCreated } from "./payout-postings.ts";
import {
  findDayOfEarnings,
  findFirstDay,
  findLastPaidDay,
  findPayout,
  insertPayout,
  type PayoutRow,
  sumPaidOut,
} from "./queries.ts";

export interface PayoutInput {
  sellerId: string;
  /** Read under the lock of the seller's account. */
  balance: Balance;
  amountMinor: bigint;
  destination: string;
  /** null: the seller requested it. */
  scheduledFor: Date | null;
}

/**
 * Debits commissions first. Returns null if the seller has an open payout in the currency, or had one at this scheduled time. The caller
 * submits it after the commit.
 */
export async function createPayout(ctx: Context, tx: Tx, input: PayoutInput): Promise<PayoutRow | null> {
  const { sellerId, balance, amountMinor } = input;
  const id = ctx.newId();
  const period = await payoutPeriod(ctx, tx, input);
  const isInserted = await insertPayout(tx, {
    id,
    sellerId,
    amountMinor,
    commissionMinor: clamp(0n, balance.referrer.availableMinor, amountMinor),
    currency: balance.currency,
    destination: input.destination,
    periodStart: period.start,
    periodEnd: period.end,
    scheduledFor: input.scheduledFor ? dayOf(input.scheduledFor) : null,
    createdAt: ctx.now(),
  });
  if (!isInserted) return null;
  const payout = required(await findPayout(tx, id), "the payout");
  await postPayoutCreated(ctx, tx, payout);
  failPoint(ctx, "payout: creating");
  return payout;
}

/**
 * The period starts the day after the last one, so that no day appears in two periods. A payout of the rest of a paid day therefore names
 * the following day.
 */
async function payoutPeriod(
  ctx: Context,
  tx: Tx,
  { sellerId, balance: { currency }, amountMinor }: PayoutInput,
) {
  const paidMinor = await sumPaidOut(tx, sellerId, currency);
  const earned = { ownerId: sellerId, currency, now: ctx.now() };
  const last = await findDayOfEarnings(tx, earned, paidMinor + amountMinor);
  const lastPaid = await findLastPaidDay(tx, sellerId, currency);
  const start = lastPaid ? dayAfter(lastPaid) : await findFirstDay(tx, sellerId, currency);
  return { start, end: start < last ? last : start };
}

const dayAfter = (day: string) => dayOf(daysAfter(new Date(day), 1));

const clamp = (least: bigint, amount: bigint, most: bigint) => {
  if (amount < least) return least;
  return amount > most ? most : amount;
};
