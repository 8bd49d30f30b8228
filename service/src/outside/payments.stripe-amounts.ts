import { currencyExponent } from "../money/amount.ts";

/** Where Stripe's smallest units are not those of ISO 4217 (docs.stripe.com/currencies, "special cases" and "zero-decimal"). */
const stripesExponents: Record<string, number> = { ISK: 2, UGX: 2, MGA: 0 };

const stepsTo = (currency: string) =>
  (stripesExponents[currency] ?? currencyExponent(currency)) - currencyExponent(currency);

/**
 * The amount as Stripe counts it; null when it cannot be told there: parts of an ariary, and of currencies with three decimals what
 * does not end in a zero.
 */
export function toStripe(minor: bigint, currency: string): number | null {
  const steps = stepsTo(currency);
  if (currencyExponent(currency) === 3 && minor % 10n !== 0n) return null;
  if (steps >= 0) return Number(minor * 10n ** BigInt(steps));
  const unit = 10n ** BigInt(-steps);
  return minor % unit === 0n ? Number(minor / unit) : null;
}

/** An amount that Stripe tells, in our minor units; `currency` in either case. Parts of ours are rounded down. */
export function fromStripe(amount: number, currency: string): bigint {
  const steps = stepsTo(currency.toUpperCase());
  return steps >= 0 ? BigInt(amount) / 10n ** BigInt(steps) : BigInt(amount) * 10n ** BigInt(-steps);
}
