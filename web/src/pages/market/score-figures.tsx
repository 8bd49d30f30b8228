import { differenceInterval } from "@stoa/evaluation/statistics";
import type { ScoreCard } from "@stoa/sdk";
import { formatCount } from "../../lib/format.ts";
import { rangeOf, wholePercent } from "../../lib/rates.ts";

type Model = ScoreCard["models"][number];
type Rate = NonNullable<Model["rate"]>;

export const RateText = ({ rate, n }: { rate: Rate; n: number }) => (
  <>
    <b className="nowrap">{wholePercent(rate.value)} %</b>{" "}
    <span className="xs soft nowrap">{rangeOf(rate, n)}</span>
  </>
);

interface GainProps {
  product: Pick<Model, "rate" | "n"> & { baseline: Pick<Model, "rate" | "n"> | null };
}

/** In points. Green if the interval of the difference is above 0: then the product surely adds something. */
export function Gain({ product: { rate, n, baseline } }: GainProps) {
  if (!rate || !baseline?.rate) return <span className="soft">–</span>;
  const { low, high } = differenceInterval(toInterval(rate), toInterval(baseline.rate));
  const tone = low > 0 ? "good m" : high < 0 ? "bad m" : "soft m";
  return (
    <span className="gain">
      <span className={tone}>{signed(rate.value - baseline.rate.value)}</span>{" "}
      <span className="xs soft nowrap">
        {signed(low)} to {signed(high)},
      </span>{" "}
      <span className="xs soft nowrap">
        n = {formatCount(n)} and {formatCount(baseline.n)}
      </span>
    </span>
  );
}

const toInterval = ({ value, ...bounds }: Rate) => ({ rate: value, ...bounds });

function signed(share: number): string {
  // Adding 0 turns -0 into 0.
  const points = Math.round(share * 100) + 0;
  return points > 0 ? `+${formatCount(points)}` : formatCount(points).replace("-", "−");
}
