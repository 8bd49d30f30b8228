import type { TestCase } from "@stoa/evaluation";
import { listJudgedAssertions } from "@stoa/evaluation/judge-prompt";
import {
  JUDGMENT_WITHOUT_OUTPUT,
  type JudgeReply,
  judgeCase,
  readJudgeAnswer,
} from "@stoa/evaluation/judgment";
import type { StoredTestSet } from "../../catalog/test-sets/test-sets.ts";
import type { Context } from "../../core/context.ts";
import { SANDBOX_LABEL } from "../../integrations/ai-providers/sandbox.ts";
import type { EndedItem } from "../workflow-runs/ended-items.ts";
import { isAsked, type JudgeCall, type JudgedOutput, listJudgeCalls } from "./judge-run.ts";
import { type ColumnRow, insertJudgments, type JudgmentRow, listResults, type ResultRow } from "./queries.ts";
import { type JudgedCall, openResultTexts, sealJudgmentTexts } from "./results.ts";

interface JudgedColumn {
  column: ColumnRow;
  testSet: StoredTestSet;
}

const STORED_AT_ONCE = 50;

/** The calls of a judge. Rows of results never change, so each process lists the same. */
export const listCallsOfJudge = async (ctx: Context, judged: JudgedColumn): Promise<JudgeCall[]> =>
  (await readColumn(ctx, judged)).calls;

async function readColumn(ctx: Context, { column, testSet }: JudgedColumn) {
  const results = await listResults(ctx.db, column.evaluationId, column.judgedColumnN ?? undefined);
  return { results, calls: listJudgeCalls(testSet.cases as TestCase[], listOutputs(ctx, results)) };
}

/** One by one: together they may have hundreds of megabytes. */
function* listOutputs(ctx: Context, results: readonly ResultRow[]): Generator<JudgedOutput> {
  for (const row of results)
    if (row.status === "completed") {
      const { caseN, repeatN } = row;
      yield { caseN, repeatN, output: openResultTexts(ctx, row).output };
    }
}

/** Stores the judge's verdict of each run whose calls have all ended. The first verdict of a run stays. */
export async function storeJudgments(
  ctx: Context,
  { items, ...judged }: JudgedColumn & { items: EndedItem[] },
): Promise<void> {
  const { results, calls } = await readColumn(ctx, judged);
  const callsOf = Map.groupBy(calls, placeOf);
  const ended = new Map(items.map((item) => [`${item.stepId} ${item.item}`, item]));
  const rows = results.flatMap((row) => {
    const testCase = judged.testSet.cases[row.caseN] as TestCase | undefined;
    if (!testCase || listJudgedAssertions(testCase).length === 0) return [];
    const replies = toReplies(callsOf.get(placeOf(row)) ?? [], ended);
    const judgment = replies && toJudgmentRow(ctx, row, testCase, replies);
    return judgment ? [judgment] : [];
  });
  for (let at = 0; at < rows.length; at += STORED_AT_ONCE)
    await insertJudgments(ctx.db, rows.slice(at, at + STORED_AT_ONCE));
}

const placeOf = ({ caseN, repeatN }: { caseN: number; repeatN: number }): string => `${caseN} ${repeatN}`;

interface EndedCall {
  call: JudgedCall;
  reply: JudgeReply;
}

/** null: a call has not ended, because the run was canceled or reached the limit. */
function toReplies(calls: readonly JudgeCall[], ended: ReadonlyMap<string, EndedItem>): EndedCall[] | null {
  const replies: EndedCall[] = [];
  for (const call of calls) {
    if (!isAsked(call)) {
      const { step, reason } = call;
      replies.push({
        reply: { answer: null, reason },
        call: { step, costUsd: null, latencyMs: null, answer: null },
      });
      continue;
    }
    const { step } = call;
    const item = ended.get(`${step.id} ${step.item}`);
    if (!item) return null;
    const reply = toReply(item);
    const { costUsd, latencyMs } = item;
    replies.push({ reply, call: { step, costUsd, latencyMs, answer: reply.answer } });
  }
  return replies;
}

function toReply({ output, error }: EndedItem): JudgeReply {
  if (error) return { answer: null, reason: `The judge gave no answer: ${error.code}.` };
  const text = typeof output === "string" ? output : "";
  return readJudgeAnswer(text.startsWith(SANDBOX_LABEL) ? text.slice(SANDBOX_LABEL.length) : text);
}

function toJudgmentRow(
  ctx: Context,
  { evaluationId, columnN, caseN, repeatN, status }: ResultRow,
  testCase: TestCase,
  replies: readonly EndedCall[],
): JudgmentRow | null {
  const judgment =
    status === "failed"
      ? JUDGMENT_WITHOUT_OUTPUT
      : judgeCase(
          testCase,
          replies.map(({ reply }) => reply),
        );
  if (!judgment) return null;
  const ref = { evaluationId, columnN, caseN, repeatN };
  const { outcome, score, verdicts } = judgment;
  const texts = { verdicts, calls: replies.map(({ call }) => call) };
  return { ...ref, outcome, score, sealedTexts: sealJudgmentTexts(ctx, ref, texts) };
}
