import type { ScoreCard } from "@stoa/contract";
import * as evaluation from "@stoa/evaluation/score-models";
import type { ColumnRow, ResultRow } from "./queries.ts";

/** The scores from the rows of an evaluation. */
export function scoreModels(
  columns: ColumnRow[],
  results: ResultRow[],
  options: { repeats: number },
): ScoreCard["models"] {
  const indexes = new Map(columns.map(({ n }, index) => [n, index]));
  const runs = results.map(({ columnN, caseN, isPassed, costUsd, latencyMs }) => ({
    column: indexes.get(columnN) ?? -1,
    case: caseN,
    isPassed,
    cost: costUsd === null ? null : Number(costUsd),
    latencyMs,
  }));
  return evaluation.scoreModels(columns, runs, options);
}
