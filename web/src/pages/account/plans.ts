import type { Subscription } from "@stoa/sdk";

export type Offer = Subscription["offers"][number];

/** "pro" is shown as "Pro". */
export const planName = (plan: string): string => plan.charAt(0).toUpperCase() + plan.slice(1);

const SPANS: [number, string][] = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
];

/** The length of a quota's window, as in "per hour" or "per 10 minutes". */
export function spanOf(seconds: number): string {
  const [length, unit] = SPANS.find(([length]) => seconds % length === 0) ?? [1, "second"];
  const count = seconds / length;
  return count === 1 ? unit : `${count} ${unit}s`;
}

/** Offers ascend. */
export const isUpgrade = ({ plan, offers }: Subscription, offer: Offer): boolean =>
  offers.findIndex((other) => other.plan === offer.plan) > offers.findIndex((other) => other.plan === plan);
