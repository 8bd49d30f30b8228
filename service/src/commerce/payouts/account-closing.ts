import { findAccount } from "../../accounts/people/accounts.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { formatMoney, toDecimal } from "../../core/money/amount.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { findPayoutDestination } from "../charges/payout-account.ts";
import { type Balance, balancesOf } from "../ledger/balances.ts";
import {
  deletePaidOffAddresses,
  findAnyOpenPayout,
  findLastAddress,
  insertLastAddress,
  RETURNED_WITHIN_MS,
} from "./queries.ts";

/** Balances that are still paid after the account is closed, and their destination. */
export interface RemainingBalance {
  amounts: { currency: string; amountMinor: bigint }[];
  destination: string;
}

/**
 * Throws while the account has an open payout or owes money. The remaining balance is paid by the schedule, which needs a
 * destination, unless the owner gives it up. Null: no balance remains. The account is locked.
 */
export async function payOutBalance(
  ctx: Context,
  tx: Tx,
  userId: string,
  { giveUpBalance, isSetUp }: { giveUpBalance: boolean; isSetUp: boolean },
): Promise<RemainingBalance | null> {
  await mustHaveNoOpenPayout(tx, userId);
  const balances = (await balancesOf(tx, userId, ctx.now())).map(toTotal);
  mustOweNothing(balances.filter(({ amountMinor }) => amountMinor < 0n));
  const amounts = balances.filter(({ amountMinor }) => amountMinor > 0n);
  if (amounts.length === 0 || giveUpBalance) return null;
  const destination = await findPayoutDestination(ctx, tx, userId);
  if (destination && isSetUp && ctx.config.payoutSchedule) return { amounts, destination };
  throw cannotPayOutError(
    amounts,
    !ctx.config.payoutSchedule ? "scheduled" : destination ? "set up" : "named",
  );
}

/** All earnings, matured or not, because later ones offset a present debt. */
const toTotal = ({ currency, pendingMinor, availableMinor, reservedMinor }: Balance) => ({
  currency,
  amountMinor: pendingMinor + availableMinor + reservedMinor,
});

async function mustHaveNoOpenPayout(tx: Tx, userId: string): Promise<void> {
  const open = await findAnyOpenPayout(tx, userId);
  if (!open) return;
  const payoutId = toId("payout", open.id);
  throw new ApiError("INVALID_STATE", `A payout to you has not ended yet: wait for ${payoutId}.`, {
    current: "money_open",
    payoutId,
  });
}

function mustOweNothing(debts: RemainingBalance["amounts"]): void {
  if (debts.length === 0) return;
  const owed = formatAmounts(debts.map((debt) => ({ ...debt, amountMinor: -debt.amountMinor })));
  throw new ApiError(
    "INVALID_STATE",
    `Refunds and disputes exceed your balance: you owe ${owed}. Wait for later sales, or contact the operator of this marketplace.`,
    { current: "money_owed", balances: toAmounts(debts) },
  );
}

const remedies = {
  scheduled: "this marketplace has no payout schedule: request a payout with POST /payouts",
  named: "set a payout account with PUT /account/payout-account",
  "set up": "finish the setup of your payout account with POST /account/payout-account/onboarding",
};

function cannotPayOutError(amounts: RemainingBalance["amounts"], lacks: keyof typeof remedies): ApiError {
  return new ApiError(
    "INVALID_STATE",
    `${formatAmounts(amounts)} is left in your balance: ${remedies[lacks]}, or give it up with giveUpBalance.`,
    { current: "money_left", balances: toAmounts(amounts) },
  );
}

/** `11.99 USD and 500 JPY` */
export const formatAmounts = (amounts: RemainingBalance["amounts"]): string =>
  amounts.map(({ currency, amountMinor }) => formatMoney(amountMinor, currency)).join(" and ");

export const toAmounts = (amounts: RemainingBalance["amounts"]) =>
  amounts.map(({ currency, amountMinor }) => ({ currency, amount: toDecimal(amountMinor, currency) }));

/** Stores the address of a closed account for emails about its remaining payouts. */
export const saveLastAddress = (tx: Tx, user: { id: string; email: string }) =>
  insertLastAddress(tx, user.id, user.email);

/** Null: the account is closed and had no balance. */
export async function findEmailAddress(db: Queries, userId: string): Promise<string | null> {
  const user = await findAccount(db, userId);
  return user && !user.closedAt ? user.email : findLastAddress(db, userId);
}

/** Deletes addresses of closed accounts that are paid off and past the return period of banks. */
export const deleteLastAddresses = (ctx: Context) =>
  deletePaidOffAddresses(ctx.db, new Date(ctx.now().getTime() - RETURNED_WITHIN_MS));
