import type { ExecutionResult } from "@stoa/contract";
import { recordFirstUse } from "../../catalog/entitlements/entitlements.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import {
  CallProgress,
  type ProviderAnswer,
  type ProviderCall,
  type TokenUsage,
} from "../../integrations/ai-providers/ai-provider.ts";
import { errorBodyOf } from "../../platform/http/error-response.ts";
import { costOf } from "../provider-keys/cost.ts";
import { hold, usageOfFailed } from "../provider-keys/provider-calls.ts";
import type { UsableKey } from "../provider-keys/provider-keys.ts";
import type { LiveRun } from "./live-runs.ts";
import type { Prepared } from "./prepare-run.ts";
import { completed, failed, type Run, type Spent } from "./run-record.ts";
import { shareWhenWatched } from "./share-output.ts";
import { traceRun } from "./trace.ts";

export type Outcome = { result: ExecutionResult } | { error: ApiError };

/** Calls the provider for a run that was started, records what came of it and tells whoever follows. Never rejects. */
export async function carryOut(ctx: Context, run: Run, prepared: Prepared): Promise<Outcome> {
  shareWhenWatched(ctx, run);
  const leave = hold(ctx, run.call);
  const outcome = await traceRun(ctx, run, prepared, () =>
    callAndRecord(ctx, run, prepared).catch((cause) => toUnexpected(ctx, run, cause)),
  );
  run.live.end(
    "result" in outcome
      ? { type: "execution.completed", data: outcome.result }
      : { type: "execution.failed", data: errorBodyOf(ctx, outcome.error) },
  );
  const remove = () => {
    leave();
    ctx.live.remove(run.id);
  };
  // While its end is held its leases are renewed, so that nobody takes it for abandoned.
  if (run.live.heldEnd !== null) void run.live.heldEnd.then(remove);
  else remove();
  return outcome;
}

function toUnexpected(ctx: Context, { id }: Run, cause: unknown): Outcome {
  ctx.log.error({ execution: id, err: cause }, "why a run failed could not be recorded");
  return { error: new ApiError("INTERNAL_ERROR", undefined, { executionId: toId("exec", id) }) };
}

async function callAndRecord(ctx: Context, run: Run, prepared: Prepared): Promise<Outcome> {
  const progress = new CallProgress();
  try {
    mustLetThrough(ctx, prepared.key);
    await noteFirstUse(ctx, run, prepared);
    const answer = await ask(ctx, run, prepared, progress);
    return { result: await finish(ctx, run, prepared, answer) };
  } catch (cause) {
    return { error: await failed(ctx, run, cause, spentBy(ctx, prepared, cause, progress)) };
  }
}

/** Where the provider is left alone for a while nothing is sent, and nothing was used. */
export const mustLetThrough = (ctx: Context, { provider, secret, baseUrl }: UsableKey): void =>
  ctx.integrations.ai.mustBeAvailable?.({ provider, apiKey: secret, baseUrl });

/** Before the call: a server of the buyer's own has the whole prompt, even if it then answers with an error. */
export async function noteFirstUse(
  ctx: Context,
  { userId }: Pick<Run, "userId">,
  { product }: Pick<Prepared, "product">,
): Promise<void> {
  if (product.reason === "purchased" && !product.usedAt) await recordFirstUse(ctx, userId, product.id);
}

/** Whole for who waits for all of it; else in pieces. */
async function ask(
  ctx: Context,
  { live, mode, call: opened }: Run,
  prepared: Prepared,
  progress: CallProgress,
): Promise<ProviderAnswer> {
  const asked = toCall(prepared, AbortSignal.any([ctx.shutdown, live.signal]));
  const call = {
    ...asked,
    progress,
    options: { ...asked.options, capTokens: opened?.maxTokens ?? prepared.options.capTokens },
  };
  if (mode !== "sync") return inPieces(ctx.integrations.ai.stream(call), live);
  const answer = await ctx.integrations.ai.run(call);
  live.say(answer.output);
  return answer;
}

async function inPieces(
  pieces: AsyncGenerator<string, ProviderAnswer, undefined>,
  live: LiveRun,
): Promise<ProviderAnswer> {
  for (;;) {
    const { done, value } = await pieces.next();
    if (done) return value;
    live.say(value);
    if (live.isAhead) await live.untilRead();
  }
}

function toCall(
  { key, model, messages, product, version, options }: Prepared,
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

const priceOf = (ctx: Context, { key, model }: Prepared, usage: TokenUsage, answeredModel = model) =>
  costOf({ provider: key.provider, model: answeredModel, askedModel: model, usage, at: ctx.now() });

/** A provider may bill although it gave no answer. */
function spentBy(ctx: Context, prepared: Prepared, cause: unknown, progress: CallProgress): Spent | null {
  const usage = usageOfFailed(cause, prepared.messages, progress);
  return usage && { usage, cost: priceOf(ctx, prepared, usage) };
}

async function finish(
  ctx: Context,
  run: Run,
  prepared: Prepared,
  answer: ProviderAnswer,
): Promise<ExecutionResult> {
  const cost = priceOf(ctx, prepared, answer.usage, answer.model);
  const durationMs = await completed(ctx, run, answer, cost);
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
