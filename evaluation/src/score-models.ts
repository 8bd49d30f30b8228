import { type CaseRuns, median, passPowerK, passRate, type Rate } from "./statistics.ts";

/** One model with the product, or its baseline: the same model with the variables alone. */
export interface EvaluatedColumn {
  kind: "product" | "baseline";
  /** Null: as the steps of the workflow say. */
  provider: string | null;
  model: string | null;
  isSandbox: boolean;
}

/** One run of an evaluation. */
export interface EvaluatedRun {
  /** Index of the column. */
  column: number;
  /** Index of the case. */
  case: number;
  /** By the deterministic assertions; null: the case has none, so the run is not counted. */
  isPassed: boolean | null;
  /** USD. */
  cost: number | null;
  latencyMs: number | null;
}

export interface ShownRate {
  value: number;
  low: number;
  high: number;
  effectiveN: number;
}

interface CountedRuns {
  passed: number;
  n: number;
  rate: ShownRate | null;
}

/** What a score card shows of one model. */
export interface ModelScore extends CountedRuns {
  provider: string | null;
  model: string | null;
  isSandbox: boolean;
  passPowerK: { k: number; rate: ShownRate | null };
  medianCost: number | null;
  medianLatencyMs: number | null;
  baseline: CountedRuns | null;
}

/** The scores of each column of the kind `product`, beside its baseline. `repeats` is how often each case ran. */
export function scoreModels(
  columns: readonly EvaluatedColumn[],
  runs: readonly EvaluatedRun[],
  { repeats }: { repeats: number },
): ModelScore[] {
  const runsOf = (index: number) =>
    runs.filter(({ column, isPassed }) => column === index && isPassed !== null);
  return columns.flatMap(({ kind, provider, model, isSandbox }, index) => {
    if (kind !== "product") return [];
    const counted = runsOf(index);
    const baseline = columns.findIndex(
      (other) => other.kind === "baseline" && other.provider === provider && other.model === model,
    );
    return {
      ...{ provider, model, isSandbox },
      ...scoreRuns(counted),
      passPowerK: { k: repeats, rate: toRate(passPowerK(countCases(counted), repeats)) },
      medianCost: median(counted.map(({ cost }) => cost).filter((cost) => cost !== null)),
      medianLatencyMs: median(counted.map(({ latencyMs }) => latencyMs).filter((time) => time !== null)),
      baseline: baseline === -1 ? null : scoreRuns(runsOf(baseline)),
    };
  });
}

const scoreRuns = (runs: readonly EvaluatedRun[]): CountedRuns => ({
  passed: runs.filter(({ isPassed }) => isPassed).length,
  n: runs.length,
  rate: toRate(passRate(countCases(runs))),
});

/** The runs of each case that have a verdict. */
function countCases(runs: readonly EvaluatedRun[]): CaseRuns[] {
  const cases = new Map<number, CaseRuns>();
  for (const run of runs) {
    const { passed, runs: known } = cases.get(run.case) ?? { passed: 0, runs: 0 };
    cases.set(run.case, { passed: passed + (run.isPassed ? 1 : 0), runs: known + 1 });
  }
  return [...cases.values()];
}

const toRate = (rate: Rate | null): ShownRate | null =>
  rate && { value: rate.rate, low: rate.low, high: rate.high, effectiveN: rate.n };
