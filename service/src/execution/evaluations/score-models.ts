import type { ScoreCard } from "@stoa/contract";
import { type CaseRuns, median, passPowerK, passRate, type Rate } from "@stoa/evaluation";
import type { ColumnRow, ResultRow } from "./queries.ts";

type ScoredModel = ScoreCard["models"][number];

/** One entry a model, each beside its baseline. */
export function scoreModels(
  columns: ColumnRow[],
  results: ResultRow[],
  { repeats }: { repeats: number },
): ScoredModel[] {
  const resultsOf = ({ n }: ColumnRow) =>
    results.filter(({ columnN, isPassed }) => columnN === n && isPassed !== null);
  return columns
    .filter(({ kind }) => kind === "product")
    .map((column) => {
      const counted = resultsOf(column);
      const baseline = columns.find(
        ({ kind, provider, model }) =>
          kind === "baseline" && provider === column.provider && model === column.model,
      );
      return {
        ...{ provider: column.provider, model: column.model, isSandbox: column.isSandbox },
        ...scoreRuns(counted),
        passPowerK: { k: repeats, rate: toRate(passPowerK(countCases(counted), repeats)) },
        medianCost: median(knownOf(counted.map(({ costUsd }) => costUsd))),
        medianLatencyMs: median(knownOf(counted.map(({ latencyMs }) => latencyMs))),
        baseline: baseline ? scoreRuns(resultsOf(baseline)) : null,
      };
    });
}

function scoreRuns(results: ResultRow[]) {
  return {
    passed: results.filter(({ isPassed }) => isPassed).length,
    n: results.length,
    rate: toRate(passRate(countCases(results))),
  };
}

/** The runs of each case that have a verdict. */
function countCases(results: ResultRow[]): CaseRuns[] {
  const cases = new Map<number, CaseRuns>();
  for (const { caseN, isPassed } of results) {
    const { passed, runs } = cases.get(caseN) ?? { passed: 0, runs: 0 };
    cases.set(caseN, { passed: passed + (isPassed ? 1 : 0), runs: runs + 1 });
  }
  return [...cases.values()];
}

const toRate = (rate: Rate | null): ScoredModel["rate"] =>
  rate && { value: rate.rate, low: rate.low, high: rate.high, effectiveN: rate.n };

const knownOf = (values: (string | number | null)[]): number[] =>
  values.filter((value) => value !== null).map(Number);
