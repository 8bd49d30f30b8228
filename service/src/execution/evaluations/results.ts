import type { AssertionVerdict, JudgedVerdict, JudgeReply } from "@stoa/evaluation";
import type { Context } from "../../core/context.ts";
import { sealedColumn } from "../../platform/db/sealed-columns.ts";
import type { EndedItem } from "../workflow-runs/ended-items.ts";
import type { CallStep } from "./judge-run.ts";

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

type Bound = Record<keyof ResultRef, string | number>;

const toContext = (kind: string, { evaluationId, columnN, caseN, repeatN }: Bound) =>
  `evaluation-${kind}|${evaluationId}|${columnN}|${caseN}|${repeatN}`;
const contextOf = (ref: Bound) => toContext("result", ref);
const contextOfJudgment = (ref: Bound) => toContext("judgment", ref);

const ofResult = {
  column: "sealed_texts",
  key: { evaluation_id: "uuid", column_n: "integer", case_n: "integer", repeat_n: "integer" },
  bound: {
    evaluationId: "t.evaluation_id",
    columnN: "t.column_n",
    caseN: "t.case_n",
    repeatN: "t.repeat_n",
  },
} as const;

export const sealedResultTexts = sealedColumn({ ...ofResult, table: "evaluation_results", contextOf });
export const sealedJudgmentTexts = sealedColumn({
  ...ofResult,
  table: "evaluation_judgments",
  contextOf: contextOfJudgment,
});

export const sealResultTexts = (ctx: Context, ref: ResultRef, texts: ResultTexts): string =>
  ctx.vault.seal(JSON.stringify(texts), contextOf(ref));

export const openResultTexts = (ctx: Context, row: ResultRef & { sealedTexts: string }): ResultTexts =>
  JSON.parse(ctx.vault.open(row.sealedTexts, contextOf(row)));

/** A call of the judge, with its answer. */
export interface JudgedCall {
  step: CallStep | null;
  costUsd: number | null;
  latencyMs: number | null;
  answer: JudgeReply["answer"];
  /** Of an `answer-relevance`: the call in which the judge wrote the questions. */
  questions?: Pick<EndedItem, "costUsd" | "latencyMs"> & { step: CallStep };
}

export interface JudgmentTexts {
  verdicts: JudgedVerdict[];
  calls: JudgedCall[];
}

export const sealJudgmentTexts = (ctx: Context, ref: ResultRef, texts: JudgmentTexts): string =>
  ctx.vault.seal(JSON.stringify(texts), contextOfJudgment(ref));

export const openJudgmentTexts = (ctx: Context, row: ResultRef & { sealedTexts: string }): JudgmentTexts =>
  JSON.parse(ctx.vault.open(row.sealedTexts, contextOfJudgment(row)));
