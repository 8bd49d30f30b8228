import { currencyExponent } from "../../core/money/amount.ts";
import type { AmountLimits } from "../../core/money/chargeable.ts";

/** Where Stripe's smallest units are not those of ISO 4217 (docs.stripe.com/currencies, "special cases" and "zero-decimal"). */
const stripeExponents: Record<string, number> = { ISK: 2, UGX: 2, MGA: 0 };

const exponentDifference = (currency: string) =>
  (stripeExponents[currency] ?? currencyExponent(currency)) - currencyExponent(currency);

/**
 * The amount in Stripe's units. null: Stripe cannot express it, such as parts of an ariary, or a third decimal that is not zero.
 */
export function toStripe(minor: bigint, currency: string): number | null {
  const steps = exponentDifference(currency);
  if (currencyExponent(currency) === 3 && minor % 10n !== 0n) return null;
  if (steps >= 0) return Number(minor * 10n ** BigInt(steps));
  const unit = 10n ** BigInt(-steps);
  return minor % unit === 0n ? Number(minor / unit) : null;
}

/** Stripe's minimum charges (docs.stripe.com/currencies, "minimum and maximum charge amounts"), in our minor units. */
const minimumCharges: Record<string, bigint> = {
  ...{ AED: 200n, AUD: 50n, BGN: 100n, BRL: 50n, CAD: 50n, CHF: 50n, CZK: 1_500n, DKK: 250n, EUR: 50n },
  ...{ GBP: 30n, HKD: 400n, HUF: 17_500n, INR: 50n, JPY: 50n, MXN: 1_000n, MYR: 200n, NOK: 300n, NZD: 50n },
  ...{ PLN: 200n, RON: 200n, SEK: 300n, SGD: 50n, THB: 1_000n, USD: 50n },
};

/** The step and minimum of amounts for `toStripe`. For converted currencies only Stripe knows the minimum. */
export function stripeLimits(currency: string): AmountLimits {
  const hidden = currencyExponent(currency) === 3 ? 1 : Math.max(0, -exponentDifference(currency));
  return { stepMinor: 10n ** BigInt(hidden), minimumMinor: minimumCharges[currency] ?? 1n };
}

/** An amount of Stripe's in our minor units, rounded down; `currency` in either case. */
export function fromStripe(amount: number, currency: string): bigint {
  const steps = exponentDifference(currency.toUpperCase());
  return steps >= 0 ? BigInt(amount) / 10n ** BigInt(steps) : BigInt(amount) * 10n ** BigInt(-steps);
}
