import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import {
  defaultModels,
  type ProviderAnswer,
  ProviderError,
} from "../../integrations/ai-providers/ai-provider.ts";
import { retryWhileAway } from "../../platform/db/database.ts";
import {
  type CallEnd,
  type KeyedCall,
  makeCall,
  type OpenCall,
  openCall,
  toCallEnd,
} from "../provider-keys/provider-calls.ts";
import type { SealedKey } from "../provider-keys/provider-keys.ts";
import type { Surroundings } from "./prepare-step.ts";
import { failed, type Outcome } from "./step-result.ts";
import { Tally } from "./usage-total.ts";

/** What trying again would not change. */
const FINAL: ReadonlySet<string> = new Set([
  "UNAUTHORIZED",
  "PRODUCT_NOT_FOUND",
  "PRODUCT_UNAVAILABLE",
  "PROVIDER_KEY_NOT_FOUND",
  "PROVIDER_KEY_INVALID",
  "PROVIDER_PERMISSION_DENIED",
  "PROVIDER_NOT_SUPPORTED",
  "VALIDATION_ERROR",
]);

/** A key of another provider, which stands in for it, has models of its own. */
export function modelFor(key: SealedKey, provider: string, wished: string | undefined): string {
  const model =
    key.provider === provider
      ? (wished ?? defaultModels[key.provider])
      : (defaultModels[key.provider] ?? wished);
  if (!model) throw new ApiError("VALIDATION_ERROR", `No model is known for the key of ${key.provider}.`);
  return model;
}

export interface Call extends Omit<KeyedCall, "executionId"> {
  /** Has its part of the key's limits already, or needs none; undefined: takes it when it is made. */
  opened?: OpenCall | null | undefined;
}

export async function callForText(
  ctx: Context,
  run: Surroundings,
  call: Call,
  tally: Tally,
): Promise<Outcome> {
  const { answer, end } = await callOnce(ctx, run, call, tally);
  await run.calls.end(end);
  return { kind: "completed", output: answer.output, facts: tally.facts };
}

/** Makes a call within what the run may cost, and tells the tally. `end` is what its key is still to be told of it. */
export async function callOnce(
  ctx: Context,
  run: Surroundings,
  { opened, ...asked }: Call,
  tally: Tally,
): Promise<{ answer: ProviderAnswer; end: CallEnd | null }> {
  const { provider } = asked.key;
  const call = { ...asked, executionId: run.id };
  const count = (model: string, usage: ProviderAnswer["usage"]) => {
    const costUsd = tally.add({ provider, model, askedModel: call.model, usage });
    run.costLimit?.spend(costUsd);
  };
  const made = await withinCost(ctx, run, call, async () => {
    const made = await makeCall(
      ctx,
      opened === undefined ? await retryWhileAway(call.signal, () => openCall(ctx, call.key, call)) : opened,
      call,
    );
    // Before what it was expected to cost is released: nothing of it may seem to be left in between.
    if ("answer" in made) count(made.answer.model, made.answer.usage);
    else if (made.usage) count(call.model, made.usage);
    return made;
  }).catch(async (cause): Promise<never> => {
    // It was not made.
    await run.calls.end(toCallEnd(ctx, opened ?? null, { cause, cost: null }));
    throw cause;
  });
  if ("answer" in made) return made;
  await run.calls.end(made.end);
  throw made.cause;
}

async function withinCost<T>(
  ctx: Context,
  { costLimit }: Surroundings,
  call: Call,
  work: () => Promise<T>,
): Promise<T> {
  const expectedUsd = costLimit?.reserve({ ...call, provider: call.key.provider, at: ctx.now() }) ?? 0;
  try {
    return await work();
  } finally {
    costLimit?.release(expectedUsd);
  }
}

/** A budget that calls under way hold limits how many run at once: the step waits for one of them to end. */
const isReserved = ({ code, details }: ProviderError | ApiError): boolean =>
  code === "KEY_BUDGET_EXCEEDED" && details?.["reason"] === "reserved";

/** What anything thrown says of a step. Nothing of it quotes a prompt, an output or a key. */
export async function guarded(
  ctx: Context,
  signal: AbortSignal,
  work: (tally: Tally) => Promise<Outcome>,
): Promise<Outcome> {
  const tally = new Tally(ctx);
  try {
    return await work(tally);
  } catch (error) {
    if (signal.aborted) return { kind: "given_up", facts: tally.facts };
    if (error instanceof ProviderError || error instanceof ApiError)
      return failed(isReserved(error) ? "KEY_CONCURRENCY_LIMIT" : error.code, error.message, {
        isFinal: FINAL.has(error.code),
        retryAfterSeconds: error.retryAfterSeconds,
        facts: tally.facts,
      });
    ctx.log.error({ err: error }, "a step of a workflow failed");
    return failed("INTERNAL_ERROR", "Something went wrong on our side.", {
      isFinal: false,
      facts: tally.facts,
    });
  }
}
