import { setTimeout as wait } from "node:timers/promises";
import type { generateText, LanguageModelUsage } from "ai";
import { type Failure, toFailure } from "./ai-provider.faults.ts";
import { languageModel } from "./ai-provider.models.ts";
import {
  type AiProviders,
  defaultDeadlines,
  estimateTokens,
  type FinishReason,
  type ProviderAnswer,
  type ProviderCall,
  ProviderFault,
  type ProviderId,
  type TokenUsage,
} from "./ai-provider.ts";
import { VERIFY_MS, verifyKey } from "./ai-provider.verify.ts";

export interface SdkProvidersOptions {
  /** Keeps the deadlines for connecting, the first byte and silence; its timeout errors carry `phase`. */
  fetch: typeof globalThis.fetch;
  /** Other addresses than the providers' own, for tests and proxies. A key's address goes first. */
  baseUrls?: Partial<Record<ProviderId, string>>;
  deadlines?: { totalMs: number };
  /** How long a provider may take to say whether it knows a key. */
  verifyMs?: number;
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  /** From 0 to 1, for the jitter. */
  random?: () => number;
}

type SdkProviders = Required<SdkProvidersOptions>;

const MAX_REPEATS = 2;
const LONGEST_WAIT_SECONDS = 10;
const FIRST_BACKOFF_MS = 500;

// Its warnings name models and settings on the console, in nobody's log format.
globalThis.AI_SDK_LOG_WARNINGS = false;

/**
 * The providers through the Vercel AI SDK. The SDK makes one call and reads the answer; deadlines, repeats and faults
 * are ours, because its own retries forget why they waited and its errors hold the whole prompt.
 */
export function createSdkProviders(options: SdkProvidersOptions): AiProviders {
  const providers: SdkProviders = {
    baseUrls: {},
    deadlines: defaultDeadlines,
    verifyMs: VERIFY_MS,
    sleep: (ms, signal) => wait(ms, undefined, { signal }),
    random: Math.random,
    ...options,
  };
  return {
    run: (call) => runInTime(providers, call),
    verify: (key, signal) => verifyKey(providers, key, signal),
  };
}

async function runInTime(providers: SdkProviders, call: ProviderCall): Promise<ProviderAnswer> {
  const deadline = startDeadline(call.signal, providers.deadlines.totalMs);
  try {
    return await runWithRepeats(providers, call, deadline);
  } finally {
    deadline.stop();
  }
}

interface Deadline {
  /** Aborts when the caller gives up or the time is over. */
  signal: AbortSignal;
  remainingMs(): number;
  stop(): void;
}

/** Why a call ends at its total deadline; read like the other timeouts, by its phase. */
class TotalTimeout extends Error {
  readonly phase = "total";
}

function startDeadline(callerSignal: AbortSignal, totalMs: number): Deadline {
  const startedAt = performance.now();
  const total = new AbortController();
  const timer = setTimeout(() => total.abort(new TotalTimeout()), totalMs);
  return {
    signal: AbortSignal.any([callerSignal, total.signal]),
    remainingMs: () => totalMs - (performance.now() - startedAt),
    stop: () => clearTimeout(timer),
  };
}

async function runWithRepeats(
  providers: SdkProviders,
  call: ProviderCall,
  deadline: Deadline,
): Promise<ProviderAnswer> {
  for (let attempts = 1; ; attempts++) {
    call.signal.throwIfAborted();
    const attempt = await tryOnce(providers, call, deadline.signal, attempts);
    if ("answer" in attempt) return attempt.answer;
    const waitMs = waitBeforeRepeat(attempt, attempts, providers.random);
    if (waitMs === undefined || waitMs >= deadline.remainingMs()) throw attempt.fault;
    await providers.sleep(waitMs, deadline.signal).catch(() => {
      call.signal.throwIfAborted();
      throw attempt.fault;
    });
  }
}

/** Undefined: do not repeat. */
function waitBeforeRepeat(
  { fault, repeat }: Failure,
  attempts: number,
  random: () => number,
): number | undefined {
  if (repeat === "never" || attempts > MAX_REPEATS) return undefined;
  // Full jitter, so that callers whom one outage stopped do not all come back at once.
  if (repeat === "soon") return random() * FIRST_BACKOFF_MS * 2 ** (attempts - 1);
  const seconds = fault.retryAfterSeconds ?? Number.POSITIVE_INFINITY;
  return seconds <= LONGEST_WAIT_SECONDS ? seconds * 1000 : undefined;
}

async function tryOnce(
  providers: SdkProviders,
  call: ProviderCall,
  signal: AbortSignal,
  attempts: number,
): Promise<{ answer: ProviderAnswer } | Failure> {
  try {
    return { answer: toAnswer(await ask(providers, call, signal), call, attempts) };
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof ProviderFault) return { fault: error, repeat: "never" };
    // After an abort the SDK and fetch each throw something of their own; the reason says what happened.
    return toFailure(signal.aborted ? signal.reason : error, call, attempts);
  }
}

type SdkAnswer = Awaited<ReturnType<typeof generateText>>;

async function ask(providers: SdkProviders, call: ProviderCall, signal: AbortSignal): Promise<SdkAnswer> {
  // Loaded with the first call: the SDK takes 0.4 s, which a service that starts should not wait for.
  const { generateText } = await import("ai");
  return generateText({
    model: await languageModel(providers, call),
    messages: call.messages.map(({ role, content }) => ({ role, content })),
    // Ours come from the author's list, never from text that a buyer put in.
    allowSystemInMessages: true,
    ...(call.options.temperature === undefined ? {} : { temperature: call.options.temperature }),
    ...(call.options.maxTokens === undefined ? {} : { maxOutputTokens: call.options.maxTokens }),
    maxRetries: 0,
    abortSignal: signal,
    telemetry: { isEnabled: false },
  });
}

const LONGEST_MODEL_NAME = 200;

const finishReasons: ReadonlyMap<string, FinishReason> = new Map<string, FinishReason>([
  ["stop", "stop"],
  ["length", "length"],
  ["content-filter", "content_filter"],
]);

function toAnswer(result: SdkAnswer, call: ProviderCall, attempts: number): ProviderAnswer {
  const answer: ProviderAnswer = {
    output: result.text,
    // From a server that anyone may run: what no database could keep must not keep the run from being recorded.
    model: result.response.modelId.toWellFormed().replaceAll("\0", "").slice(0, LONGEST_MODEL_NAME),
    finishReason: finishReasons.get(result.finishReason) ?? "other",
    usage: toUsage(result.usage, call, result.text),
    attempts,
  };
  mustBeWhole(result, call.provider, attempts);
  mustHoldText(answer, call.provider, stageOf(result));
  return answer;
}

/** Without a word on why the model stopped, the answer may be cut, and a cut answer is never passed off as whole. */
function mustBeWhole(result: SdkAnswer, provider: ProviderId, attempts: number): void {
  const isBroken = result.finishReason === "error" || result.rawFinishReason === "error";
  if (isBroken || !result.rawFinishReason)
    throw new ProviderFault("PROVIDER_BAD_RESPONSE", { provider, attempts });
}

/** Nothing is an answer where the model stopped by itself or ran out of tokens while it still reasoned. */
function mustHoldText(answer: ProviderAnswer, provider: ProviderId, stage: "input" | "output"): void {
  if (answer.output !== "") return;
  const { attempts, usage } = answer;
  if (answer.finishReason === "content_filter") {
    throw new ProviderFault("CONTENT_FILTERED", { provider, attempts, stage, usage });
  }
  if (answer.finishReason === "other") {
    throw new ProviderFault("PROVIDER_BAD_RESPONSE", { provider, attempts, usage });
  }
}

/** Google alone tells a refused prompt in an answer; the others refuse the request. */
function stageOf({ providerMetadata }: SdkAnswer): "input" | "output" {
  return providerMetadata?.google?.promptFeedback ? "input" : "output";
}

function toUsage(usage: LanguageModelUsage, call: ProviderCall, output: string): TokenUsage {
  const prompt = countOf(usage.inputTokens);
  const completion = countOf(usage.outputTokens);
  const promptTokens = prompt ?? estimateTokens(call.messages.map(({ content }) => content).join("\n\n"));
  const completionTokens = completion ?? estimateTokens(output);
  return {
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    ...counted("cachedTokens", usage.inputTokenDetails.cacheReadTokens),
    ...counted("cacheWriteTokens", usage.inputTokenDetails.cacheWriteTokens),
    ...counted("reasoningTokens", usage.outputTokenDetails.reasoningTokens),
    ...(prompt === undefined || completion === undefined ? { estimated: true as const } : {}),
  };
}

/** More than any model reads or writes, and as many as the history's column holds. */
const MAX_TOKENS = 2 ** 31 - 1;

/** Counts become money: from a server that anyone may run, only what can be a count is taken. */
function countOf(tokens: number | undefined): number | undefined {
  return Number.isInteger(tokens) && tokens! >= 0 && tokens! <= MAX_TOKENS ? tokens : undefined;
}

function counted<Name extends string>(name: Name, tokens: number | undefined): { [name in Name]?: number } {
  const count = countOf(tokens);
  return (count ? { [name]: count } : {}) as { [name in Name]?: number };
}
