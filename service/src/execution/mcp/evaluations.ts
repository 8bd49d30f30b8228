import { setTimeout as wait } from "node:timers/promises";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { api, type Evaluation, type EvaluationEstimate, type ScoreCard } from "@stoa/contract";
import { findProductToRun } from "../../catalog/products/detail.ts";
import { findTestSet } from "../../catalog/test-sets/test-sets.ts";
import type { Context, Member } from "../../core/context.ts";
import { requireUuid, toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import { parseNew } from "../../platform/http/validate.ts";
import { estimateEvaluation } from "../evaluations/estimate-evaluation.ts";
import { cancelEvaluation, createEvaluation, readEvaluationSummary } from "../evaluations/evaluations.ts";
import { comparesAny, countJudgeCalls } from "../evaluations/judge-plan.ts";
import { findCardEvaluation, findScores, listColumns } from "../evaluations/queries.ts";
import { findReleasedVersion } from "../evaluations/re-evaluation-queries.ts";
import { findDefaultKey } from "../prompt-runs/default-key.ts";
import { findDefaultKeys } from "../workflow-runs/default-keys.ts";
import { CancelEvaluation, Evaluate, GetEvaluation } from "./evaluation-tools.ts";
import { parseIdSuffix, parsePromptName } from "./names.ts";
import { findProductByIdSuffix } from "./queries.ts";
import { toToolResult } from "./results.ts";
import type { ToolCall } from "./tool-call.ts";

type Arguments = Record<string, unknown>;
type Model = ScoreCard["models"][number];

const POLL_MS = 500;
/** Only for the checks of an estimate, which spends nothing. */
const ESTIMATE_MAX_COST = 1;

/** Estimates, or with `maxCost` starts an evaluation as `POST /products/{productId}/evaluations` does, and waits a while for its end. */
export async function evaluateTool(
  ctx: Context,
  caller: Member,
  args: Arguments,
  call: ToolCall,
): Promise<CallToolResult> {
  const { product: name, maxCost, waitSeconds, ...options } = parseNew(Evaluate, args, "arguments");
  const productId = await findProductId(ctx, caller, name);
  const request = parseNew(
    api.evaluations.create.request.body,
    {
      ...(await withDefaultKeys(ctx, caller, productId, options)),
      repeats: options.repeats,
      ...(await withDefaultJudge(ctx, productId, options.judge)),
      maxCost: maxCost ?? ESTIMATE_MAX_COST,
    },
    "arguments",
  );
  if (maxCost === undefined)
    return toEstimateResult(await estimateEvaluation(ctx, caller, productId, request));
  const { data } = await createEvaluation(ctx, caller, productId, request);
  const ended = await waitForEvaluation(ctx, caller, data.id, waitSeconds, call);
  if (call.signal.aborted && !ctx.shutdown.aborted && ended.status === "running")
    return toEvaluationResult(ctx, await cancelEvaluation(ctx, caller, data.id));
  return toEvaluationResult(ctx, ended);
}

export async function getEvaluationTool(ctx: Context, caller: Member, args: Arguments, call: ToolCall) {
  const { evaluationId, waitSeconds } = parseNew(GetEvaluation, args, "arguments");
  return toEvaluationResult(ctx, await waitForEvaluation(ctx, caller, evaluationId, waitSeconds, call));
}

export async function cancelEvaluationTool(ctx: Context, caller: Member, args: Arguments) {
  const { evaluationId } = parseNew(CancelEvaluation, args, "arguments");
  return toEvaluationResult(ctx, await cancelEvaluation(ctx, caller, evaluationId));
}

/** The id for the name of a product's tool or prompt. Anything else is taken as an id. */
async function findProductId(ctx: Context, caller: Member, name: string): Promise<string> {
  const suffix = parseIdSuffix(parsePromptName(name) ?? name);
  const id = suffix && (await findProductByIdSuffix(ctx.db, caller.userId, suffix));
  return id ? toId("prod", id) : name;
}

/** As a run: the caller's newest keys that fit, else the sandbox in a test environment. */
async function withDefaultKeys(
  ctx: Context,
  caller: Member,
  productId: string,
  { models, apiKeys }: Pick<ReturnType<typeof Evaluate.parse>, "models" | "apiKeys">,
) {
  const product = await findProductToRun(ctx, caller, productId);
  if (product.type !== "PROMPT")
    return {
      ...(models && { models }),
      apiKeys: { ...(await findDefaultKeys(ctx, caller, product.content)), ...apiKeys },
    };
  const chosen = [];
  for (const { model, apiKeyId } of models ?? [{}])
    chosen.push({
      apiKeyId: apiKeyId ?? (await findDefaultKey(ctx, caller, product, model)),
      ...(model !== undefined && { model }),
    });
  return { models: chosen, ...(apiKeys && { apiKeys }) };
}

/** Without a judge, an evaluation would replace a card that has judged figures by one without them. */
async function withDefaultJudge(
  { db }: Context,
  productId: string,
  judge: ReturnType<typeof Evaluate.parse>["judge"],
) {
  if (judge !== undefined) return judge && { judge };
  const id = requireUuid("prod", productId);
  const testSet = await findTestSet(db, id);
  const version = await findReleasedVersion(db, id);
  const card = version ? await findCardEvaluation(db, { productId: id, version }) : undefined;
  if (!card?.judge || !testSet || countJudgeCalls(testSet, card.judge) === 0) return {};
  const { provider, model, embedding } = card.judge;
  const column = (await listColumns(db, [card.id])).find(({ kind }) => kind === "judge");
  const keyOf = (name: string) => required(column?.apiKeys[name], "the key of a judge");
  return {
    judge: {
      ...{ apiKeyId: keyOf(provider), model },
      ...(embedding &&
        comparesAny(testSet) && {
          embedding: { apiKeyId: keyOf(embedding.provider), model: embedding.model },
        }),
    },
  };
}

/** Returns the evaluation when it has ended, or after the time. Progress is the number of its columns that have ended. */
async function waitForEvaluation(
  ctx: Context,
  caller: Member,
  evaluationId: string,
  waitSeconds: number,
  { signal, reportProgress }: ToolCall,
): Promise<Evaluation> {
  const signalOrTimeout = AbortSignal.any([signal, ctx.shutdown, AbortSignal.timeout(waitSeconds * 1000)]);
  let reported = 0;
  for (;;) {
    const evaluation = await readEvaluationSummary(ctx, caller, evaluationId);
    if (evaluation.status !== "running" || waitSeconds === 0 || signalOrTimeout.aborted) return evaluation;
    const ended = evaluation.columns.filter(
      ({ status }) => status !== "pending" && status !== "running",
    ).length;
    if (ended > reported)
      await reportProgress?.(ended, `${ended} of ${evaluation.columns.length} columns have ended`);
    reported = ended;
    await wait(POLL_MS, undefined, { signal: signalOrTimeout }).catch(() => {});
  }
}

function toEstimateResult({ cost, columns }: EvaluationEstimate): CallToolResult {
  const sumOf = (summed: typeof columns) => summed.reduce((sum, one) => sum + one.runs, 0);
  const runs = sumOf(columns.filter(isOfRuns));
  const judge = columns.find(({ kind }) => kind === "judge");
  const calls = judge
    ? ` and ${sumOf(columns) - runs} calls of the judge ${judge.provider} ${judge.model}`
    : "";
  const price = cost === null ? "their cost is not known" : `they are expected to cost ${cost} USD`;
  return toToolResult(
    `The evaluation has ${runs} runs${calls}, and ${price}. Nothing was started. When your user has confirmed the cost, call evaluate again with maxCost.`,
    {
      ...{ evaluationId: null, status: "estimated", version: null, runs, cost, error: null },
      models: columns,
    },
  );
}

async function toEvaluationResult(ctx: Context, evaluation: Evaluation): Promise<CallToolResult> {
  const { id, status, version, cost, error, columns } = evaluation;
  const scores = status === "completed" ? ((await findScores(ctx.db, requireUuid("eval", id))) ?? []) : [];
  const runs = columns.filter(isOfRuns).reduce((sum, { n }) => sum + n, 0);
  const payload = { evaluationId: id, status, version, runs, cost, error, models: scores };
  const result = toToolResult(describeEvaluation(evaluation, scores), payload);
  return status === "failed" || status === "canceled" ? { ...result, isError: true } : result;
}

/** A judge runs nothing: its figures are about the runs of another column. */
const isOfRuns = ({ kind }: Pick<Evaluation["columns"][number], "kind">): boolean => kind !== "judge";

function describeEvaluation({ id, status, error, version, cost }: Evaluation, scores: Model[]): string {
  if (error) return `${error.code}: ${error.message}\nIt was evaluation ${id}, which cost ${cost} USD.`;
  if (status === "canceled") return `Evaluation ${id} was canceled. It cost ${cost} USD.`;
  if (status === "running") return `Evaluation ${id} has not ended. Call get_evaluation later.`;
  return [
    `Evaluation ${id} of version ${version} has completed. It cost ${cost} USD.`,
    ...scores.map(describeModel),
  ].join("\n");
}

const describeModel = (score: Model): string => {
  const name = score.model ? `${score.provider} ${score.model}` : "The models of its steps";
  const practice = score.isSandbox ? " (practice provider, no model)" : "";
  const bare = score.baseline ? `; without the product ${describeRuns(score.baseline)}` : "";
  return `- ${name}${practice}: ${describeRuns(score)}${bare}.${describeJudged(score)}`;
};

function describeJudged({ judged }: Model): string {
  if (!judged) return "";
  const undecided = judged.undecided > 0 ? `, ${judged.undecided} undecided` : "";
  const bare = judged.baseline ? `; without the product ${describeRuns(judged.baseline)}` : "";
  return ` By the judge: ${describeRuns(judged)}${undecided}${bare}.`;
}

const describeRuns = ({ passed, n, rate }: Pick<Model, "passed" | "n" | "rate">): string =>
  rate
    ? `${passed} of ${n} runs passed, ${percent(rate.value)} (95 % interval ${percent(rate.low)} to ${percent(rate.high)})`
    : "no run has a verdict";

const percent = (share: number): string => `${Math.round(share * 100)} %`;
