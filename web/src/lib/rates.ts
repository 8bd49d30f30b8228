import { formatCount } from "./format.ts";

interface Bounds {
  low: number;
  high: number;
}

/** A share in whole percent, without the sign. */
export const wholePercent = (share: number): string => formatCount(Math.round(share * 100));

/** What stands beside each rate: its 95 % interval and the number of runs or cases. */
export const rangeOf = ({ low, high }: Bounds, n: number): string =>
  `${wholePercent(low)}–${wholePercent(high)}, n = ${formatCount(n)}`;
