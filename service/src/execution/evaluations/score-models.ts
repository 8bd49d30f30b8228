import type { ScoreCard } from "@stoa/contract";
import * as evaluation from "@stoa/evaluation/score-models";
import type { ColumnRow, JudgmentRow, ResultRow } from "./queries.ts";

/** The scores from the rows of an evaluation. */
export function scoreModels(
  columns: ColumnRow[],
  results: ResultRow[],
  judgments: JudgmentRow[],
  options: { repeats: number },
): ScoreCard["models"] {
  const indexes = new Map(columns.map(({ n }, index) => [n, index]));
  const judged = new Map(judgments.map((judgment) => [keyOf(judgment), judgment]));
  const runs = results.map(({ columnN, caseN, repeatN, isPassed, costUsd, latencyMs }) => ({
    column: indexes.get(columnN) ?? -1,
    case: caseN,
    isPassed,
    cost: costUsd === null ? null : Number(costUsd),
    latencyMs,
    judgment: judged.get(keyOf({ columnN, caseN, repeatN })) ?? null,
  }));
  return evaluation.scoreModels(columns, runs, options);
}

/** The run that a row is about. */
export const keyOf = ({
  columnN,
  caseN,
  repeatN,
}: Pick<ResultRow, "columnN" | "caseN" | "repeatN">): string => `${columnN} ${caseN} ${repeatN}`;
