import type { TestCase } from "@stoa/evaluation";
import { isCosine } from "@stoa/evaluation/embedding-assertions";
import { listJudgedAssertions } from "@stoa/evaluation/judge-prompt";
import {
  JUDGMENT_WITHOUT_OUTPUT,
  type JudgeReply,
  judgeCase,
  readJudgeAnswer,
} from "@stoa/evaluation/judgment";
import type { StoredTestSet } from "../../catalog/test-sets/test-sets.ts";
import type { Context } from "../../core/context.ts";
import { withoutSandboxLabel } from "../../integrations/ai-providers/sandbox.ts";
import type { EndedItem } from "../workflow-runs/ended-items.ts";
import {
  type AskedCall,
  type CallStep,
  isAsked,
  type JudgeCall,
  type JudgedOutput,
  listJudgeCalls,
  toQuestionsStep,
} from "./judge-run.ts";
import {
  type ColumnRow,
  insertJudgments,
  type JudgmentRow,
  listResults,
  type ResultRow,
  type StoredJudge,
} from "./queries.ts";
import { type JudgedCall, openResultTexts, sealJudgmentTexts } from "./results.ts";

interface JudgedColumn {
  column: ColumnRow;
  testSet: StoredTestSet;
  judge: StoredJudge;
}

const STORED_AT_ONCE = 50;

/** The calls of a judge. Rows of results never change, so each process lists the same. */
export const listCallsOfJudge = async (ctx: Context, judged: JudgedColumn): Promise<JudgeCall[]> =>
  (await readColumn(ctx, judged)).calls;

async function readColumn(ctx: Context, { column, testSet, judge }: JudgedColumn) {
  const results = await listResults(ctx.db, column.evaluationId, column.judgedColumnN ?? undefined);
  return { results, calls: listJudgeCalls(testSet.cases as TestCase[], listOutputs(ctx, results), judge) };
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
  const ended: EndedItems = new Map(items.map((item) => [`${item.stepId} ${item.item}`, item]));
  const rows = results.flatMap((row) => {
    const testCase = judged.testSet.cases[row.caseN] as TestCase | undefined;
    if (!testCase || listJudgedAssertions(testCase, judged.judge).length === 0) return [];
    const replies = toReplies(callsOf.get(placeOf(row)) ?? [], ended);
    const judgment = replies && toJudgmentRow(ctx, row, { testCase, replies, judge: judged.judge });
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

type EndedItems = ReadonlyMap<string, EndedItem>;

const findEnded = (ended: EndedItems, { id, item }: CallStep): EndedItem | undefined =>
  ended.get(`${id} ${item}`);

/** null: a call has not ended, because the run was canceled or reached the limit. */
function toReplies(calls: readonly JudgeCall[], ended: EndedItems): EndedCall[] | null {
  const replies: EndedCall[] = [];
  for (const call of calls) {
    const reply = isAsked(call) ? toEndedCall(call, ended) : toRefusedCall(call.reason);
    if (!reply) return null;
    replies.push(reply);
  }
  return replies;
}

const toRefusedCall = (reason: string): EndedCall => ({
  reply: { answer: null, reason },
  call: { step: null, costUsd: null, latencyMs: null, answer: null },
});

function toEndedCall({ step, request }: AskedCall, ended: EndedItems): EndedCall | null {
  const item = findEnded(ended, step);
  if (!item) return null;
  const { costUsd, latencyMs } = item;
  if (request.kind !== "relevance") {
    const reply = request.kind === "rubric" ? toReply(item) : toCosines(item);
    return { reply, call: { step, costUsd, latencyMs, answer: reply.answer } };
  }
  const writing = toQuestionsStep(step);
  const written = findEnded(ended, writing);
  if (!written) return null;
  const reply = written.error ? toReply(written) : toCosines(item, written.output);
  const questions = { step: writing, costUsd: written.costUsd, latencyMs: written.latencyMs };
  return { reply, call: { step, costUsd, latencyMs, answer: reply.answer, questions } };
}

function toReply({ output, error }: EndedItem): JudgeReply {
  if (error) return { answer: null, reason: `The judge gave no answer: ${error.code}.` };
  const text = typeof output === "string" ? output : "";
  return readJudgeAnswer(withoutSandboxLabel(text));
}

const MAX_REASON_CHARACTERS = 1_000;

/** `questions`: those that the judge wrote. */
function toCosines({ output, error }: EndedItem, questions?: unknown): JudgeReply {
  if (error) return { answer: null, reason: `The texts have no embeddings: ${error.code}. ${error.message}` };
  const cosines = (Array.isArray(output) ? output : []).filter(isCosine);
  const shown = cosines.map((cosine) => cosine.toFixed(3)).join(", ");
  const reason = questions
    ? `The cosines of the input with these questions, which the output answers, are ${shown}: ${JSON.stringify(questions)}`
    : `The cosine of the output with each reference: ${shown}.`;
  return { answer: { cosines }, reason: reason.slice(0, MAX_REASON_CHARACTERS).toWellFormed() };
}

function toJudgmentRow(
  ctx: Context,
  { evaluationId, columnN, caseN, repeatN, status }: ResultRow,
  { testCase, replies, judge }: { testCase: TestCase; replies: readonly EndedCall[]; judge: StoredJudge },
): JudgmentRow | null {
  const judgment =
    status === "failed"
      ? JUDGMENT_WITHOUT_OUTPUT
      : judgeCase(
          testCase,
          replies.map(({ reply }) => reply),
          judge,
        );
  if (!judgment) return null;
  const ref = { evaluationId, columnN, caseN, repeatN };
  const { outcome, score, verdicts } = judgment;
  const texts = { verdicts, calls: replies.map(({ call }) => call) };
  return { ...ref, outcome, score, sealedTexts: sealJudgmentTexts(ctx, ref, texts) };
}
