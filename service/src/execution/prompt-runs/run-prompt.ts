import type { ExecutionResult } from "@stoa/contract";
import { recordFirstUse } from "../../catalog/entitlements/entitlements.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { followSignal } from "../../core/follow-signal.ts";
import { toId } from "../../core/ids.ts";
import {
  CallProgress,
  type ProviderAnswer,
  type ProviderCall,
  type TokenUsage,
} from "../../integrations/ai-providers/ai-provider.ts";
import { errorBodyOf } from "../../platform/http/error-response.ts";
import { priceUsage } from "../provider-keys/cost.ts";
import { findUsageOfFailure, keepLeaseRenewed } from "../provider-keys/provider-calls.ts";
import type { UsableKey } from "../provider-keys/provider-keys.ts";
import type { LiveRun } from "./live-runs.ts";
import type { PreparedRun } from "./prepare-run.ts";
import { type PromptRun, type RunUsage, recordCompleted, recordFailed } from "./run-record.ts";
import { shareWhenWatched } from "./share-output.ts";
import { traceRun } from "./trace.ts";

export type RunResult = { result: ExecutionResult } | { error: ApiError };

/** Calls the provider for a started run, records the result and ends its events. Never rejects. */
export async function runPrompt(ctx: Context, run: PromptRun, prepared: PreparedRun): Promise<RunResult> {
  shareWhenWatched(ctx, run);
  const stopRenewal = keepLeaseRenewed(ctx, run.call);
  const result = await traceRun(ctx, run, prepared, () =>
    callAndRecord(ctx, run, prepared).catch((cause) => toUnexpected(ctx, run, cause)),
  );
  run.live.end(
    "result" in result
      ? { type: "execution.completed", data: result.result }
      : { type: "execution.failed", data: errorBodyOf(ctx, result.error) },
  );
  const remove = () => {
    stopRenewal();
    ctx.liveRuns.remove(run.id);
  };
  // While the end waits for the database, the renewed leases keep other processes from failing the run.
  if (run.live.pendingEnd !== null) void run.live.pendingEnd.then(remove);
  else remove();
  return result;
}

function toUnexpected(ctx: Context, { id }: PromptRun, cause: unknown): RunResult {
  ctx.log.error({ execution: id, err: cause }, "why a run failed could not be recorded");
  return { error: new ApiError("INTERNAL_ERROR", undefined, { executionId: toId("exec", id) }) };
}

async function callAndRecord(ctx: Context, run: PromptRun, prepared: PreparedRun): Promise<RunResult> {
  const progress = new CallProgress();
  try {
    mustBeReachable(ctx, prepared.key);
    await recordFirstUseOfPurchase(ctx, run, prepared);
    const answer = await callProvider(ctx, run, prepared, progress);
    return { result: await complete(ctx, run, prepared, answer) };
  } catch (cause) {
    return { error: await recordFailed(ctx, run, cause, findFailedUsage(ctx, prepared, cause, progress)) };
  }
}

/** Throws if the provider's circuit is open: nothing is sent and no usage counts. */
export const mustBeReachable = (ctx: Context, { provider, secret, baseUrl }: UsableKey): void =>
  ctx.integrations.ai.mustBeAvailable?.({ provider, apiKey: secret, baseUrl });

/** Recorded before the call, because a server of the buyer gets the whole prompt even if it answers with an error. */
export async function recordFirstUseOfPurchase(
  ctx: Context,
  { userId }: Pick<PromptRun, "userId">,
  { product }: Pick<PreparedRun, "product">,
): Promise<void> {
  if (product.reason === "purchased" && !product.usedAt) await recordFirstUse(ctx, userId, product.id);
}

/** A sync run gets its answer at once, other modes in pieces. */
async function callProvider(
  ctx: Context,
  { live, mode, call: opened }: PromptRun,
  prepared: PreparedRun,
  progress: CallProgress,
): Promise<ProviderAnswer> {
  const stop = new AbortController();
  const unfollow = [followSignal(stop, ctx.shutdown), followSignal(stop, live.signal)];
  const base = toProviderCall(prepared, stop.signal);
  const call = {
    ...base,
    progress,
    options: { ...base.options, capTokens: opened?.maxTokens ?? prepared.options.capTokens },
  };
  try {
    if (mode !== "sync") return await ctx.integrations.ai.stream(call, (piece) => appendPiece(live, piece));
    const answer = await ctx.integrations.ai.run(call);
    live.append(answer.output);
    return answer;
  } finally {
    for (const end of unfollow) end();
  }
}

function appendPiece(live: LiveRun, piece: string): Promise<void> | undefined {
  live.append(piece);
  return live.isAhead ? live.waitForReader() : undefined;
}

function toProviderCall(
  { key, model, messages, product, version, options }: PreparedRun,
  signal: AbortSignal,
): ProviderCall {
  return {
    provider: key.provider,
    apiKey: key.secret,
    baseUrl: key.baseUrl,
    model,
    messages,
    options: {
      ...(options.temperature !== undefined && { temperature: options.temperature }),
      ...(options.maxTokens !== undefined && { maxTokens: options.maxTokens }),
    },
    signal,
    timeoutMs: options.timeoutSeconds && options.timeoutSeconds * 1_000,
    versionId: `${product.id}@${version}`,
  };
}

const priceOf = (ctx: Context, { key, model }: PreparedRun, usage: TokenUsage, answeredModel = model) =>
  priceUsage({ provider: key.provider, model: answeredModel, askedModel: model, usage, at: ctx.now() });

/** A provider may bill a call that failed. */
function findFailedUsage(
  ctx: Context,
  prepared: PreparedRun,
  cause: unknown,
  progress: CallProgress,
): RunUsage | null {
  const usage = findUsageOfFailure(cause, prepared.messages, progress);
  return usage && { usage, cost: priceOf(ctx, prepared, usage) };
}

async function complete(
  ctx: Context,
  run: PromptRun,
  prepared: PreparedRun,
  answer: ProviderAnswer,
): Promise<ExecutionResult> {
  const cost = priceOf(ctx, prepared, answer.usage, answer.model);
  const durationMs = await recordCompleted(ctx, run, answer, cost);
  const { promptTokens, completionTokens, totalTokens, estimated = false } = answer.usage;
  return {
    executionId: toId("exec", run.id),
    output: answer.output,
    usage: { promptTokens, completionTokens, totalTokens, ...cost, estimated },
    metadata: {
      model: answer.model,
      duration: durationMs / 1000,
      provider: prepared.key.provider,
      finishReason: answer.finishReason,
      attempts: answer.attempts,
      productVersion: prepared.version,
      mode: run.mode,
    },
  };
}
