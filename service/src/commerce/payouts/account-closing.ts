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

/** Paid by the schedule after the account is closed. */
export interface RemainingBalance {
  amounts: { currency: string; amountMinor: bigint }[];
  destination: string;
}

/**
 * Throws if a payout is open or the account owes money. The schedule pays the balance, unless the owner gives it up. null: no balance. The
 * account is locked.
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

export const formatAmounts = (amounts: RemainingBalance["amounts"]): string =>
  amounts.map(({ currency, amountMinor }) => formatMoney(amountMinor, currency)).join(" and ");

export const toAmounts = (amounts: RemainingBalance["amounts"]) =>
  amounts.map(({ currency, amountMinor }) => ({ currency, amount: toDecimal(amountMinor, currency) }));

/** For emails about payouts after the account is closed. */
export const saveLastAddress = (tx: Tx, user: { id: string; email: string }) =>
  insertLastAddress(tx, user.id, user.email);

/** null: the account is open, or it had no balance when it closed. */
export const findAddressOfClosedAccount = (db: Queries, userId: string): Promise<string | null> =>
  findLastAddress(db, userId);

/** Waits until banks can no longer return the last payout. */
export const deleteLastAddresses = (ctx: Context) =>
  deletePaidOffAddresses(ctx.db, new Date(ctx.now().getTime() - RETURNED_WITHIN_MS));
