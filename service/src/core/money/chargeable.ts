import { formatMoney } from "./amount.ts";

export interface AmountLimits {
  stepMinor: bigint;
  minimumMinor: bigint;
}

/** Returns the reason as the rest of a sentence about the amount. 0 needs no charge. */
export function findChargeProblem(
  { stepMinor, minimumMinor }: AmountLimits,
  minor: bigint,
  currency: string,
): string | null {
  if (minor === 0n) return null;
  if (minor < minimumMinor)
    return `must be at least ${formatMoney(minimumMinor, currency)}, the minimum that the payment provider charges`;
  return findStepAmountProblem(stepMinor, minor, currency);
}

export const findStepAmountProblem = (stepMinor: bigint, minor: bigint, currency: string): string | null =>
  minor % stepMinor === 0n
    ? null
    : `must be a multiple of ${formatMoney(stepMinor, currency)}, the smallest amount of the payment provider`;

export function mustBeChargeable(
  provider: { limitsOf(currency: string): AmountLimits },
  minor: bigint,
  currency: string,
  refusal: (why: string) => Error,
): void {
  const why = findChargeProblem(provider.limitsOf(currency), minor, currency);
  if (why) throw refusal(why);
}
