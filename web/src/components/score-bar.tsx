import type { CardScore } from "@stoa/sdk";
import { formatPercent } from "../lib/format.ts";

type Rate = CardScore["rate"];

const percent = (share: number): string => `${share * 100}%`;

export const rateSentence = (rate: Rate, name = "Pass rate"): string =>
  `${name} ${formatPercent(rate.value)}, 95 % interval ${formatPercent(rate.low)} to ${formatPercent(rate.high)}`;

/** Track from 0 to 100 %, the interval, the rate, and a ring for the model without the product. */
export function ScoreBar({ rate, bare, name }: { rate: Rate; bare: Rate | null; name?: string }) {
  const sentence = rateSentence(rate, name);
  const [from, to] = bare ? [bare.value, rate.value].toSorted((a, b) => a - b) : [];
  return (
    <span
      className="iv"
      role="img"
      aria-label={bare ? `${sentence}; ${rateSentence(bare, "without this product")}` : sentence}
    >
      {from !== undefined && to !== undefined && (
        <i style={{ left: percent(from), width: percent(to - from) }} />
      )}
      <u style={{ left: percent(rate.low), width: percent(rate.high - rate.low) }} />
      {bare && <em style={{ left: percent(bare.value) }} />}
      <s style={{ left: percent(rate.value) }} />
    </span>
  );
}

/** Solid up to the lower bound, paler up to the upper bound. */
export const SmallScoreBar = ({ rate }: { rate: Rate }) => (
  <span className="ivm" role="img" aria-label={rateSentence(rate)}>
    <b style={{ width: percent(rate.low) }} />
    <u style={{ width: percent(rate.high - rate.low) }} />
  </span>
);
