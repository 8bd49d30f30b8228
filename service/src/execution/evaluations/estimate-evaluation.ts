import type { EvaluateProduct, EvaluationEstimate } from "@stoa/contract";
import type { TestCase } from "@stoa/evaluation";
import { QUESTION_COUNT } from "@stoa/evaluation/embedding-assertions";
import { toInputText } from "@stoa/evaluation/input-text";
import type { Context, Member } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { parseMessages, renderMessages } from "../../formats/prompt-template/template.ts";
import type { Message, ProviderId } from "../../integrations/ai-providers/ai-provider.ts";
import { estimateWorkflow } from "../estimates/estimate-workflow.ts";
import { estimateUsage, PRICE_LIST, priceUsage, roundUsd } from "../provider-keys/cost.ts";
import { type EvaluationPlan, type PlannedColumn, planEvaluation, toRunInput } from "./evaluation-plan.ts";
import { countJudgeCalls } from "./judge-plan.ts";
import { type AskedCall, isAsked, JUDGE_OPTIONS, listJudgeCalls, toJudgeMessages } from "./judge-run.ts";
import type { StoredEmbedding, StoredJudge } from "./queries.ts";

/** Calls no provider and writes nothing. */
export async function estimateEvaluation(
  ctx: Context,
  caller: Member,
  productId: string,
  request: EvaluateProduct,
): Promise<EvaluationEstimate> {
  const plan = await planEvaluation(ctx, caller, productId, request);
  const runsOf = (kind: PlannedColumn["kind"]) =>
    request.repeats *
    (kind === "judge" ? countJudgeCalls(plan.testSet, plan.judge ?? {}) : plan.testSet.cases.length);
  const columns = [];
  for (const { apiKeys: _, judgedColumnN, ...column } of plan.columns) {
    const runs = runsOf(column.kind);
    const cost =
      column.kind === "judge"
        ? estimateJudge(ctx, plan, required(plan.judge, "the judge of a column"))
        : await estimateCases(ctx, plan, column);
    columns.push({
      ...column,
      judgedColumn: judgedColumnN,
      runs,
      cost: cost === null ? null : roundUsd(cost * request.repeats),
    });
  }
  return {
    runs: columns.reduce((sum, { runs }) => sum + runs, 0),
    columns,
    cost: columns.reduce<number | null>(
      (sum, { cost }) => (sum === null || cost === null ? null : roundUsd(sum + cost)),
      0,
    ),
    prices: PRICE_LIST,
  };
}

type SpecColumn = Omit<PlannedColumn, "apiKeys" | "judgedColumnN">;

/** An output of the length that the estimate of a run expects: 500 tokens. */
const EXPECTED_OUTPUT = "word ".repeat(400);

/** A question that a judge writes, of 25 tokens. */
const EXPECTED_QUESTION = "word ".repeat(20);

/** USD of judging one repeat of all cases. */
function estimateJudge(ctx: Context, { testSet }: EvaluationPlan, judge: StoredJudge): number {
  const outputs = testSet.cases.map((_, caseN) => ({ caseN, repeatN: 0, output: EXPECTED_OUTPUT }));
  const calls = listJudgeCalls(testSet.cases as TestCase[], outputs, judge).filter(isAsked);
  return calls.reduce((sum, { request }) => sum + estimateRequest(ctx, judge, request), 0);
}

function estimateRequest(ctx: Context, judge: StoredJudge, request: AskedCall["request"]): number {
  const ask = (instructions: string, message: string) =>
    estimateCall(ctx, judge, toJudgeMessages(instructions, message), JUDGE_OPTIONS) ?? 0;
  if (request.kind === "rubric") return ask(judge.instructions, request.message);
  const embedding = required(judge.embedding, "the embedding model of a judge");
  const { text } = request;
  if (request.kind === "similar") return estimateEmbedding(ctx, embedding, [text, ...request.references]);
  const questions = Array<string>(QUESTION_COUNT).fill(EXPECTED_QUESTION);
  return (
    ask(embedding.instructions, request.message) + estimateEmbedding(ctx, embedding, [text, ...questions])
  );
}

const estimateEmbedding = (ctx: Context, model: StoredEmbedding, texts: string[]): number =>
  estimateCall(
    ctx,
    model,
    texts.map((content) => ({ role: "user", content })),
    { maxTokens: 0 },
  ) ?? 0;

/** USD of one repeat of all cases; null: not known. */
async function estimateCases(
  ctx: Context,
  { product, testSet }: EvaluationPlan,
  column: SpecColumn,
): Promise<number | null> {
  let sum = 0;
  for (const { input } of testSet.cases) {
    const cost =
      column.provider === null
        ? (await estimateWorkflow(ctx, product, { variables: input, options: {} })).cost.max
        : estimatePrompt(ctx, product, column, toRunInput(product, input));
    if (cost === null) return null;
    sum += cost;
  }
  return sum;
}

function estimatePrompt(
  ctx: Context,
  product: EvaluationPlan["product"],
  { kind, provider, model }: SpecColumn,
  values: Record<string, unknown>,
): number | null {
  const messages =
    kind === "baseline"
      ? [{ role: "user" as const, content: toInputText(values) }]
      : renderMessages(
          parseMessages(product.contentFormat, product.content),
          new Map(Object.entries(values).map(([name, value]) => [name, String(value)])),
        );
  return estimateCall(ctx, { provider, model }, messages);
}

function estimateCall(
  ctx: Context,
  { provider, model }: Pick<SpecColumn, "provider" | "model">,
  messages: Message[],
  options: { maxTokens?: number } = {},
): number | null {
  const call = { provider: provider as ProviderId, model: model ?? "", messages, options, at: ctx.now() };
  const { estimatedCost, costKnown } = priceUsage({ ...call, usage: estimateUsage(call) });
  return costKnown ? estimatedCost : null;
}
