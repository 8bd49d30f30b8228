import "./run-output.css";
import { formatCost } from "../../lib/format.ts";
import type { CostRange } from "../../lib/run-costs.ts";

const FLUTES = 40;

interface TallyProps {
  /** USD; null: no price is known. */
  spent: number | null;
  /** What was estimated before the run; null: nothing. */
  range: CostRange | null;
  isEstimate?: boolean;
}

/** The cost of a run beside what was estimated: full flutes up to the lower estimate, low ones up to the upper, colored as far as spent. */
export function Tally({ spent, range }: TallyProps) {
  if (spent === null || range === null || range.high <= 0) return null;
  // A run that costs more than estimated fills the flutes, and those beyond the estimate warn.
  const top = Math.max(range.high, spent);
  const flutes = Array.from({ length: FLUTES }, (_, at) => {
    const cost = ((at + 1) / FLUTES) * top;
    const isSpent = cost <= spent + top / FLUTES / 2;
    return [isSpent && (cost > range.high ? "over" : "on"), cost > range.low && "hi"]
      .filter(Boolean)
      .join(" ");
  });
  return (
    // biome-ignore lint/a11y/useSemanticElements: browsers draw a meter element themselves.
    <div
      className="tally"
      role="meter"
      aria-label="Cost so far"
      aria-valuemin={0}
      aria-valuemax={top}
      aria-valuenow={spent}
      aria-valuetext={`${formatCost(spent)}, estimated ${describeRange(range)}`}
    >
      {flutes.map((name, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the flutes are in a fixed order
        <i key={at} className={name} />
      ))}
    </div>
  );
}

/** Four decimals would show it as $0.0000. */
const LEAST_SHOWN = 0.00005;

export function describeRange({ low, high }: CostRange): string {
  if (high === 0) return "free";
  if (formatCost(low) === formatCost(high)) return formatCost(high);
  return low < LEAST_SHOWN ? `up to ${formatCost(high)}` : `${formatCost(low)} to ${formatCost(high)}`;
}

/** The large figure beside the flutes. */
export function CostFigure({ spent, range, isEstimate = false }: TallyProps) {
  return (
    <div className="r">
      <div className="run-cost num">
        {isEstimate && spent !== null && spent > 0 && <span className="faint">≈ </span>}
        {spent === null ? (
          <span className="soft">Price unknown</span>
        ) : spent === 0 ? (
          "Free"
        ) : (
          formatCost(spent)
        )}
      </div>
      {range !== null && range.high > 0 && spent !== null && (
        <div className="xs soft num">estimated {describeRange(range)}</div>
      )}
    </div>
  );
}
