import type { JudgedOutcome } from "./judgment.ts";
import { type CaseRuns, median, passPowerK, passRate, type Rate } from "./statistics.ts";

/** One model with the product, its baseline (the same model with the variables alone), or the judge of such a column. */
export interface EvaluatedColumn {
  kind: "product" | "baseline" | "judge";
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
  /** By the judged assertions; absent or null: the judge was asked about none. */
  judgment?: { outcome: JudgedOutcome } | null;
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

/** Runs by the verdicts of a judge. Those that are undecided count as not passed. */
interface JudgedRuns extends CountedRuns {
  undecided: number;
}

interface AnsweringModel {
  provider: string;
  model: string;
  isSandbox: boolean;
}

/** What a score card shows of one model. */
export interface ModelScore extends CountedRuns {
  provider: string | null;
  model: string | null;
  isSandbox: boolean;
  passPowerK: { k: number; rate: ShownRate | null };
  medianCost: number | null;
  medianLatencyMs: number | null;
  /** Of a workflow with the model that answered: its steps may have others. */
  baseline: (CountedRuns & Partial<AnsweringModel>) | null;
  /** Never part of the numbers above. Absent: the evaluation has no judge. */
  judged?: JudgedRuns & { baseline: JudgedRuns | null };
}

/** The scores of each column of the kind `product`, beside its baseline. `repeats` is how often each case ran. */
export function scoreModels(
  columns: readonly EvaluatedColumn[],
  runs: readonly EvaluatedRun[],
  { repeats }: { repeats: number },
): ModelScore[] {
  const runsOf = (index: number) => runs.filter(({ column }) => column === index);
  const hasJudge = columns.some(({ kind }) => kind === "judge");
  return columns.flatMap(({ kind, provider, model, isSandbox }, index) => {
    if (kind !== "product") return [];
    const own = runsOf(index);
    const counted = own.filter(hasVerdict);
    const measured = own.filter((run) => hasVerdict(run) || run.judgment);
    const isWorkflow = provider === null;
    // An evaluation of a workflow has one column with it, and at most one without it.
    const baseline = columns.findIndex(
      (other) =>
        other.kind === "baseline" && (isWorkflow || (other.provider === provider && other.model === model)),
    );
    return {
      ...{ provider, model, isSandbox },
      ...scoreRuns(counted),
      passPowerK: { k: repeats, rate: toRate(passPowerK(countCases(counted), repeats)) },
      medianCost: median(measured.map(({ cost }) => cost).filter((cost) => cost !== null)),
      medianLatencyMs: median(measured.map(({ latencyMs }) => latencyMs).filter((time) => time !== null)),
      baseline:
        baseline === -1
          ? null
          : {
              ...scoreRuns(runsOf(baseline).filter(hasVerdict)),
              ...(isWorkflow && toAnsweringModel(columns[baseline])),
            },
      ...(hasJudge && {
        judged: {
          ...scoreJudgments(own),
          baseline: baseline === -1 ? null : scoreJudgments(runsOf(baseline)),
        },
      }),
    };
  });
}

function toAnsweringModel(column: EvaluatedColumn | undefined): AnsweringModel | null {
  if (!column) return null;
  const { provider, model, isSandbox } = column;
  return provider === null || model === null ? null : { provider, model, isSandbox };
}

const hasVerdict = ({ isPassed }: EvaluatedRun): boolean => isPassed !== null;

function scoreJudgments(runs: readonly EvaluatedRun[]): JudgedRuns {
  const outcomes = runs.flatMap((run) => (run.judgment ? [{ run, outcome: run.judgment.outcome }] : []));
  return {
    ...scoreRuns(outcomes.map(({ run, outcome }) => ({ ...run, isPassed: outcome === "passed" }))),
    undecided: outcomes.filter(({ outcome }) => outcome === "undecided").length,
  };
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
