import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import {
  defaultModels,
  type ProviderAnswer,
  ProviderError,
  type ProviderId,
} from "../../integrations/ai-providers/ai-provider.ts";
import { retryWhileUnavailable } from "../../platform/db/database.ts";
import {
  type AskProvider,
  askForText,
  type CallEnd,
  type KeyedCall,
  makeCall,
  type OpenCall,
  openCall,
  toCallEnd,
} from "../provider-keys/provider-calls.ts";
import type { SealedKey } from "../provider-keys/provider-keys.ts";
import type { RunContext } from "./prepare-step.ts";
import { type StepResult, toFailedStep } from "./step-result.ts";
import { UsageTotal } from "./usage-total.ts";

/** A retry would fail in the same way. */
const FINAL_CODES: ReadonlySet<string> = new Set([
  "UNAUTHORIZED",
  "PRODUCT_NOT_FOUND",
  "PRODUCT_UNAVAILABLE",
  "PROVIDER_KEY_NOT_FOUND",
  "PROVIDER_KEY_INVALID",
  "PROVIDER_PERMISSION_DENIED",
  "PROVIDER_NOT_SUPPORTED",
  "VALIDATION_ERROR",
]);

/** A key of another provider that replaces this one has its own models. */
export function findModel(
  key: SealedKey,
  provider: string,
  requested: string | undefined,
  defaults: Partial<Record<ProviderId, string | null>> = defaultModels,
): string {
  const model =
    key.provider === provider ? (requested ?? defaults[key.provider]) : (defaults[key.provider] ?? requested);
  if (!model) throw new ApiError("VALIDATION_ERROR", `No model is known for the key of ${key.provider}.`);
  return model;
}

export interface StepCall extends Omit<KeyedCall, "executionId"> {
  /** The reservation; null: none is needed; undefined: the call makes its own. */
  opened?: OpenCall | null | undefined;
}

export async function callForText(
  ctx: Context,
  run: RunContext,
  call: StepCall,
  usageTotal: UsageTotal,
): Promise<StepResult> {
  const { answer, end } = await callProvider(ctx, run, call, usageTotal, askForText);
  await run.pendingCalls.end(end);
  return { kind: "completed", output: answer.output, callUsage: usageTotal.callUsage };
}

/** Makes a call within the cost limit and adds its usage. The caller must write `end`. */
export async function callProvider<Answer extends Pick<ProviderAnswer, "model" | "usage">>(
  ctx: Context,
  run: RunContext,
  { opened, ...request }: StepCall,
  usageTotal: UsageTotal,
  ask: AskProvider<Answer>,
): Promise<{ answer: Answer; end: CallEnd | null }> {
  const { provider } = request.key;
  const call = { ...request, executionId: run.id };
  const count = (model: string, usage: ProviderAnswer["usage"]) => {
    const costUsd = usageTotal.add({ provider, model, askedModel: call.model, usage });
    run.costLimit?.spend(costUsd);
  };
  const finished = await withReservedCost(ctx, run, call, async () => {
    const finished = await makeCall(
      ctx,
      opened === undefined
        ? await retryWhileUnavailable(call.signal, () => openCall(ctx, call.key, call))
        : opened,
      call,
      ask,
    );
    // Counted before the reservation is released, so that the limit never seems free in between.
    if ("answer" in finished) count(finished.answer.model, finished.answer.usage);
    else if (finished.usage) count(call.model, finished.usage);
    return finished;
  }).catch(async (cause): Promise<never> => {
    // The call was not made.
    await run.pendingCalls.end(toCallEnd(ctx, opened ?? null, { cause, cost: null }));
    throw cause;
  });
  if ("answer" in finished) return finished;
  await run.pendingCalls.end(finished.end);
  throw finished.cause;
}

async function withReservedCost<T>(
  ctx: Context,
  { costLimit }: RunContext,
  call: StepCall,
  work: () => Promise<T>,
): Promise<T> {
  const expectedUsd = costLimit?.reserve({ ...call, provider: call.key.provider, at: ctx.now() }) ?? 0;
  try {
    return await work();
  } finally {
    costLimit?.release(expectedUsd);
  }
}

/** The budget would suffice without the reservations of open calls: the step waits for one of them to end. */
const isBudgetReserved = ({ code, details }: ProviderError | ApiError): boolean =>
  code === "KEY_BUDGET_EXCEEDED" && details?.["reason"] === "reserved";

/** Converts an error to a failed step. No text quotes a prompt, an output or a key. */
export async function catchStepErrors(
  ctx: Context,
  signal: AbortSignal,
  work: (usageTotal: UsageTotal) => Promise<StepResult>,
): Promise<StepResult> {
  const usageTotal = new UsageTotal(ctx);
  try {
    return await work(usageTotal);
  } catch (error) {
    if (signal.aborted) return { kind: "aborted", callUsage: usageTotal.callUsage };
    if (error instanceof ProviderError || error instanceof ApiError)
      return toFailedStep(isBudgetReserved(error) ? "KEY_CONCURRENCY_LIMIT" : error.code, error.message, {
        isFinal: FINAL_CODES.has(error.code),
        retryAfterSeconds: error.retryAfterSeconds,
        callUsage: usageTotal.callUsage,
      });
    ctx.log.error({ err: error }, "a step of a workflow failed");
    return toFailedStep("INTERNAL_ERROR", "Something went wrong on our side.", {
      isFinal: false,
      callUsage: usageTotal.callUsage,
    });
  }
}
