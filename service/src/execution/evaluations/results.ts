import type { AssertionVerdict } from "@stoa/evaluation";
import type { Context } from "../../core/context.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";

export interface ResultTexts {
  output: unknown;
  verdicts: AssertionVerdict[];
}

interface ResultRef {
  evaluationId: string;
  columnN: number;
  caseN: number;
  repeatN: number;
}

const contextOf = ({ evaluationId, columnN, caseN, repeatN }: Record<keyof ResultRef, string | number>) =>
  `evaluation-result|${evaluationId}|${columnN}|${caseN}|${repeatN}`;

export const sealedResultTexts = sealedColumn({
  table: "evaluation_results",
  column: "sealed_texts",
  key: { evaluation_id: "uuid", column_n: "integer", case_n: "integer", repeat_n: "integer" },
  bound: {
    evaluationId: "t.evaluation_id",
    columnN: "t.column_n",
    caseN: "t.case_n",
    repeatN: "t.repeat_n",
  },
  contextOf,
});

export const sealResultTexts = (ctx: Context, ref: ResultRef, texts: ResultTexts): string =>
  ctx.vault.seal(JSON.stringify(texts), contextOf(ref));

export const openResultTexts = (ctx: Context, row: ResultRef & { sealedTexts: string }): ResultTexts =>
  JSON.parse(ctx.vault.open(row.sealedTexts, contextOf(row)));
