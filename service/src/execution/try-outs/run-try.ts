import type { Try, TryResult } from "@stoa/contract";
import type { Caller, Context } from "../../core/context.ts";
import { dayOf } from "../../core/dates.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import {
  CallProgress,
  estimateAbandonedUsage,
  estimateTokens,
  type ProviderAnswer,
  ProviderError,
} from "../../integrations/ai-providers/ai-provider.ts";
import { readPieces } from "../../integrations/ai-providers/read-pieces.ts";
import { errorBodyOf } from "../../platform/http/error-response.ts";
import { EventStreamResponse, type RequestInfo, type StreamedEvent } from "../../platform/http/route.ts";
import { ratesOf } from "../provider-keys/call-price.ts";
import { type Cost, priceUsage } from "../provider-keys/cost.ts";
import { writeDurably } from "../provider-keys/durable-write.ts";
import {
  endCall,
  findUsageOfFailure,
  keepLeaseRenewed,
  type OpenCall,
  toCallEnd,
  toOpenCall,
  withReservation,
} from "../provider-keys/provider-calls.ts";
import { toUsableKey } from "../provider-keys/provider-keys.ts";
import { reserveCall } from "../provider-keys/queries.ts";
import { LeakGuard } from "./leak-guard.ts";
import { mustBeHuman, type PreparedTry, prepareTry, turnedOff, unavailable } from "./prepare-try.ts";
import { endTry, reserveTry, type TryEnd, type TryRefusal, type VisitorCount } from "./queries.ts";
import { periodOf } from "./try-outs.ts";
import { visitorCountsOf } from "./visitors.ts";

const TIMEOUT_MS = 120_000;
/** A try cannot last as long, so its process has died. */
const LEASE_MS = 5 * 60_000;

interface RunningTry extends PreparedTry {
  id: string;
  call: OpenCall | null;
  visitors: VisitorCount[];
  triesLeft: number;
  startedAtMs: number;
  signal: AbortSignal;
}

type Facts = Pick<RequestInfo, "acceptsEvents" | "disconnectSignal" | "source">;

/** Runs a prompt for a visitor, with the key of its seller. */
export async function runTry(
  ctx: Context,
  caller: Caller,
  productId: string,
  input: Try,
  info: Facts,
): Promise<TryResult | EventStreamResponse> {
  const isStream = input.stream || info.acceptsEvents;
  if (isStream && ctx.idempotencyKey)
    throw invalidRequest("stream", "cannot be sent with an Idempotency-Key: a stream is not sent again");
  const prepared = await prepareTry(ctx, productId, input);
  await mustBeHuman(ctx, caller, input.captcha, info.source.ip);
  if (ctx.liveRuns.isFull) throw unavailable();
  const gone = new AbortController();
  const running = await startTry(ctx, caller, prepared, info.source.ip, gone.signal);
  info.disconnectSignal()?.addEventListener("abort", () => gone.abort(), { once: true });
  const pieces = answerInPieces(ctx, running);
  if (isStream) return streamTry(ctx, pieces, gone);
  let output = "";
  for (;;) {
    const { done, value } = await pieces.next();
    if (done) return { output: value.withheld ? null : output, ...value };
    output += value;
  }
}

/** For a repeated Idempotency-Key: the process of the first try died with its answer, and another try would count again. */
export async function refuseLostTry(): Promise<never> {
  throw new ApiError(
    "INVALID_STATE",
    "The answer to the first request with this Idempotency-Key is lost, because answers are not stored. Try again with a new key.",
    { current: "lost" },
  );
}

/** Counts the try and reserves its cost, in the limits of the product, the visitor and the key. */
async function startTry(
  ctx: Context,
  caller: Caller,
  prepared: PreparedTry,
  ip: string,
  gone: AbortSignal,
): Promise<RunningTry> {
  const id = ctx.newId();
  const now = ctx.now();
  const { productId, messages, model, key, tryOut } = prepared;
  const period = periodOf(now);
  const visitors = visitorCountsOf(ctx, caller, { ip, productId, today: period.today });
  const rates = ratesOf({ provider: key.provider, model, messages, at: now });
  const options = { maxTokens: tryOut.maxOutputTokens };
  const call = toOpenCall(ctx, key, { executionId: id, model, messages, options });
  const reserved = await ctx.db.transaction().execute(async (tx) => {
    const result = await reserveTry(tx, {
      ...{ id, productId, ...period, visitors, startedAt: now },
      expectedUsd: rates ? rates.promptUsd + options.maxTokens * rates.tokenUsd : 0,
      abandonedUsd: rates ? priceOfPrompt(ctx, prepared).estimatedCost : 0,
      leaseUntil: new Date(now.getTime() + LEASE_MS),
    });
    if (result.refusedBy) throw refusal(result.refusedBy, now);
    const reservedCall = call && (await reserveSellersCall(ctx, tx, call));
    await ctx.idempotencyKey?.bind(tx, id);
    return { triesLeft: result.triesLeft, call: reservedCall };
  });
  const signal = AbortSignal.any([ctx.shutdown, gone, AbortSignal.timeout(TIMEOUT_MS)]);
  return { ...prepared, ...reserved, id, visitors, signal, startedAtMs: performance.now() };
}

/** The limits of the key are the seller's affair: visitors do not learn which one was reached. */
async function reserveSellersCall(
  ctx: Context,
  tx: Parameters<typeof reserveCall>[0],
  call: OpenCall,
): Promise<OpenCall> {
  const result = await reserveCall(tx, call.reservation);
  try {
    return withReservation(call, result);
  } catch (error) {
    ctx.log.info({ key: call.reservation.providerKeyId, refusedBy: result.refusedBy }, "a key refused a try");
    throw error instanceof ApiError ? unavailable() : error;
  }
}

const refusals: Record<Exclude<TryRefusal, "off">, { limit: string; message: string }> = {
  visitor: { limit: "visitor", message: "You have used all your tries of this product for today." },
  day: { limit: "day", message: "All tries of this product for today are used." },
  budget: { limit: "month", message: "The seller's budget for tries of this product is used up this month." },
};

function refusal(refusedBy: TryRefusal, now: Date): ApiError {
  if (refusedBy === "off") return turnedOff();
  const { limit, message } = refusals[refusedBy];
  const next =
    limit === "month"
      ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1)
      : Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1);
  const again = `Try again from ${dayOf(new Date(next))} (UTC), or buy the product.`;
  const retryAfter = Math.max(1, Math.ceil((next - now.getTime()) / 1000));
  return new ApiError("RATE_LIMIT_EXCEEDED", `${message} ${again}`, { limit }, retryAfter);
}

function priceOfPrompt(ctx: Context, { key, model, messages }: PreparedTry): Cost {
  const promptTokens = messages.reduce((sum, { content }) => sum + estimateTokens(content), 0);
  const usage = { promptTokens, completionTokens: 0, totalTokens: promptTokens };
  return priceUsage({ provider: key.provider, model, usage, at: ctx.now() });
}

type TryAnswer = Omit<TryResult, "output">;

/** Yields what the visitor may see. The end of the try is recorded in any case. */
async function* answerInPieces(
  ctx: Context,
  running: RunningTry,
): AsyncGenerator<string, TryAnswer, undefined> {
  const progress = new CallProgress();
  const stop = new AbortController();
  const stopRenewal = keepLeaseRenewed(ctx, running.call);
  const guard = new LeakGuard(running.hidden);
  let result: Result = { cause: new Error("the visitor left") };
  try {
    const answer = yield* readAnswer(ctx, running, { progress, stop, guard });
    if (answer) result = { answer };
    if (guard.isWithheld) result = { ...result, isWithheld: true };
    return {
      withheld: guard.isWithheld,
      isCut: answer?.finishReason === "length",
      model: answer?.model ?? running.model,
      duration: Math.round(performance.now() - running.startedAtMs) / 1000,
      triesLeft: running.triesLeft,
    };
  } catch (cause) {
    result = { cause };
    throw toVisitorsError(ctx, running, cause);
  } finally {
    await recordEnd(ctx, running, result, progress).finally(stopRenewal);
  }
}

interface Reader {
  progress: CallProgress;
  stop: AbortController;
  guard: LeakGuard;
}

/** null: the guard withheld the answer before its end. */
async function* readAnswer(
  ctx: Context,
  { key, model, messages, tryOut, version, productId, signal }: RunningTry,
  { progress, stop, guard }: Reader,
): AsyncGenerator<string, ProviderAnswer | null, undefined> {
  const { provider, baseUrl, secret } = toUsableKey(ctx, key);
  ctx.integrations.ai.mustBeAvailable?.({ provider, apiKey: secret, baseUrl });
  const pieces = readPieces(ctx.integrations.ai, {
    ...{ provider, baseUrl, apiKey: secret, model, messages, progress },
    options: { maxTokens: tryOut.maxOutputTokens },
    signal: AbortSignal.any([signal, stop.signal]),
    timeoutMs: TIMEOUT_MS,
    versionId: `${productId}@${version}`,
  });
  try {
    for (;;) {
      const { done, value } = await pieces.next();
      const shown = done ? guard.finish() : guard.push(value);
      if (shown === null) return done ? value : null;
      if (shown !== "") yield shown;
      if (done) return value;
    }
  } finally {
    stop.abort();
    // Frees the memory of an answer that is not read to its end; it rejects because the call is aborted.
    await pieces.return(undefined as never).catch(() => {});
  }
}

type Result = { cause?: unknown; answer?: ProviderAnswer; isWithheld?: boolean };

async function recordEnd(
  ctx: Context,
  running: RunningTry,
  { cause, answer, isWithheld = false }: Result,
  progress: CallProgress,
): Promise<void> {
  const { key, model, messages, call, id, visitors } = running;
  const isFailure = answer === undefined && !isWithheld;
  const usage =
    answer?.usage ??
    (isWithheld ? estimateAbandonedUsage(messages, progress) : findUsageOfFailure(cause, messages, progress));
  const answered = { model: answer?.model ?? model, askedModel: model };
  const cost = usage && priceUsage({ provider: key.provider, ...answered, usage, at: ctx.now() });
  const end = toCallEnd(ctx, call, isFailure ? { cause, cost } : { cost: cost ?? NO_COST });
  if (end) await endCall(ctx, end);
  const isVisitorsFault = running.signal.aborted || codeOf(cause) === "CONTENT_FILTERED";
  const tryEnd: TryEnd = {
    ...{ id, costUsd: cost?.estimatedCost ?? 0, endedAt: ctx.now() },
    status: isWithheld ? "withheld" : isFailure ? "failed" : "completed",
    errorCode: isFailure ? codeOf(cause) : null,
    freed: isFailure && !isVisitorsFault ? visitors : [],
  };
  await writeDurably(ctx, { try: id }, () => endTry(ctx.db, tryEnd));
}

const NO_COST: Cost = { estimatedCost: 0, costKnown: false };

const codeOf = (cause: unknown) =>
  cause instanceof ProviderError || cause instanceof ApiError ? cause.code : "INTERNAL_ERROR";

/** Says nothing about the seller's key, provider or prompt. */
function toVisitorsError(ctx: Context, { id }: RunningTry, cause: unknown): ApiError {
  if (cause instanceof ProviderError && cause.code === "CONTENT_FILTERED")
    return new ApiError("CONTENT_FILTERED");
  if (!(cause instanceof ProviderError)) ctx.log.warn({ try: id, err: cause }, "a try failed");
  return unavailable();
}

/** The stream ends with its try; a shutdown aborts the call. */
const never = new AbortController().signal;

/** Waits for the first words, so that an earlier error is the response. */
async function streamTry(
  ctx: Context,
  pieces: ReturnType<typeof answerInPieces>,
  gone: AbortController,
): Promise<EventStreamResponse> {
  const first = await pieces.next();
  return new EventStreamResponse({
    endSignal: never,
    onEnd: () => gone.abort(),
    events: (signal) => {
      signal.addEventListener("abort", () => gone.abort(), { once: true });
      return toEvents(ctx, first, pieces);
    },
  });
}

async function* toEvents(
  ctx: Context,
  first: IteratorResult<string, TryAnswer>,
  pieces: ReturnType<typeof answerInPieces>,
): AsyncGenerator<StreamedEvent> {
  try {
    for (let next = first; ; next = await pieces.next()) {
      if (next.done) {
        const type = next.value.withheld ? "try.withheld" : "try.completed";
        return yield { type, data: JSON.stringify(next.value) };
      }
      yield { type: "output.delta", data: JSON.stringify({ text: next.value }) };
    }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    yield { type: "try.failed", data: JSON.stringify(errorBodyOf(ctx, error)) };
  } finally {
    // Also when the visitor left: the try must be recorded.
    await pieces.return(undefined as never);
  }
}
