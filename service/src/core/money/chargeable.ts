import { formatMoney } from "./amount.ts";

/** The amounts of a currency that a payment provider moves: multiples of a step, and charges from a minimum. */
export interface AmountLimits {
  stepMinor: bigint;
  minimumMinor: bigint;
}

/** Why the provider cannot charge an amount, as the rest of a sentence about it; null where it can. Nothing is charged for 0. */
export function whyNotChargeable(
  { stepMinor, minimumMinor }: AmountLimits,
  minor: bigint,
  currency: string,
): string | null {
  if (minor === 0n) return null;
  if (minor < minimumMinor)
    return `must be at least ${formatMoney(minimumMinor, currency)}, the minimum that the payment provider charges`;
  return whyNotOnStep(stepMinor, minor, currency);
}

export const whyNotOnStep = (stepMinor: bigint, minor: bigint, currency: string): string | null =>
  minor % stepMinor === 0n
    ? null
    : `must be a multiple of ${formatMoney(stepMinor, currency)}, the smallest amount of the payment provider`;

/** Throws when the provider cannot charge an amount, with the reason. */
export function mustBeChargeable(
  provider: { limitsOf(currency: string): AmountLimits },
  minor: bigint,
  currency: string,
  refusal: (why: string) => Error,
): void {
  const why = whyNotChargeable(provider.limitsOf(currency), minor, currency);
  if (why) throw refusal(why);
}
