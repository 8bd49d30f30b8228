import type { Balance as ApiBalance, Maturity } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { currencyExponent, toDecimal } from "../../core/money/amount.ts";
import { mapPage, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { type Balance, balancesOf } from "../ledger/balances.ts";
import { listMaturityDays, listNextMaturities } from "./queries.ts";

/** In units of the currency: the fee of a transfer would consume a smaller payout. */
const MINIMUM_WITH_DECIMALS = 10n;
const MINIMUM_WITHOUT_DECIMALS = 1_000n;

export function minimumMinor(currency: string): bigint {
  const exponent = currencyExponent(currency);
  return exponent === 0 ? MINIMUM_WITHOUT_DECIMALS : MINIMUM_WITH_DECIMALS * 10n ** BigInt(exponent);
}

/** Rounds down to the provider's step; the remainder waits for the next payout. */
export const payableAmount = (ctx: Context, currency: string, minor: bigint): bigint =>
  minor - (minor % ctx.integrations.payments.limitsOf(currency).stepMinor);

export const emptyBalance = (currency: string): Balance => ({
  currency,
  pendingMinor: 0n,
  availableMinor: 0n,
  reservedMinor: 0n,
  inTransitMinor: 0n,
  referrer: { pendingMinor: 0n, availableMinor: 0n, reservedMinor: 0n },
});

type NextMaturity = Awaited<ReturnType<typeof listNextMaturities>>[number];

/** Callers without earnings get a zero balance in the default currency. */
export async function readBalance(ctx: Context, caller: Member, paging: Paging): Promise<Page<ApiBalance>> {
  const found = await balancesOf(ctx.db, caller.userId, ctx.now());
  const all = found.length > 0 ? found : [emptyBalance(ctx.config.currency)];
  const maturities = await listNextMaturities(ctx.db, caller.userId, ctx.now());
  const visible = all.slice(offsetOf(paging), offsetOf(paging) + paging.limit);
  const nextOf = (currency: string) => maturities.find((one) => one.currency === currency);
  return { items: visible.map((balance) => toBalance(balance, nextOf(balance.currency))), total: all.length };
}

export async function listMaturities(
  ctx: Context,
  { userId }: Member,
  query: Paging & { currency?: string | undefined },
): Promise<Page<Maturity>> {
  const page = await listMaturityDays(ctx.db, userId, ctx.now(), query);
  return mapPage(page, ({ amountMinor, currency, ...day }) => ({
    ...day,
    currency,
    amount: toDecimal(amountMinor, currency),
  }));
}

function toBalance(balance: Balance, next: NextMaturity | undefined): ApiBalance {
  const { currency } = balance;
  const amount = (minor: bigint) => toDecimal(minor, currency);
  return {
    currency,
    pending: amount(balance.pendingMinor),
    available: amount(balance.availableMinor),
    reserved: amount(balance.reservedMinor),
    inTransit: amount(balance.inTransitMinor),
    minimum: amount(minimumMinor(currency)),
    nextMaturity: next ? { amount: amount(next.amountMinor), at: next.at.toISOString() } : null,
  };
}
