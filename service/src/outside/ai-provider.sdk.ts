import { setTimeout as wait } from "node:timers/promises";
import { type Generated, toAnswer } from "./ai-provider.answer.ts";
import { type Failure, toFailure } from "./ai-provider.faults.ts";
import { callOptions, languageModel } from "./ai-provider.models.ts";
import { type Deadline, startDeadline, untilRepeat } from "./ai-provider.patience.ts";
import { streamInTime } from "./ai-provider.stream.ts";
import {
  type AiProviders,
  defaultDeadlines,
  type ProviderAnswer,
  type ProviderCall,
  ProviderFault,
  type ProviderId,
} from "./ai-provider.ts";
import { brokenIn } from "./ai-provider.upstream.ts";
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

/**
 * The providers through the packages of the Vercel AI SDK, one for each wire format. They make one call and read the
 * answer; deadlines, repeats and faults are ours, because the SDK's own retries forget why they waited and its errors
 * hold the whole prompt.
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
    stream: (call) => streamInTime(providers, call),
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

async function runWithRepeats(
  providers: SdkProviders,
  call: ProviderCall,
  deadline: Deadline,
): Promise<ProviderAnswer> {
  for (let attempts = 1; ; attempts++) {
    call.signal.throwIfAborted();
    const attempt = await tryOnce(providers, call, deadline.signal, attempts);
    if ("answer" in attempt) return attempt.answer;
    await untilRepeat(providers, call, deadline, attempt, attempts);
  }
}

async function tryOnce(
  providers: SdkProviders,
  call: ProviderCall,
  signal: AbortSignal,
  attempts: number,
): Promise<{ answer: ProviderAnswer } | Failure> {
  let status: number | undefined;
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await providers.fetch(input, init);
    status = response.status;
    return response;
  };
  try {
    return { answer: await ask({ ...providers, fetch }, call, signal, attempts) };
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof ProviderFault) return { fault: error, repeat: "never" };
    // After an abort the SDK and fetch each throw something of their own; the reason says what happened.
    return toFailure(signal.aborted ? signal.reason : brokenIn(status, error), call, attempts);
  }
}

async function ask(
  providers: SdkProviders,
  call: ProviderCall,
  signal: AbortSignal,
  attempts: number,
): Promise<ProviderAnswer> {
  const model = await languageModel(providers, call);
  const generated = await model.doGenerate(callOptions(call, signal));
  mustBeNoError(generated);
  const output = generated.content.map((part) => (part.type === "text" ? part.text : "")).join("");
  return toAnswer({ ...generated, output, model: generated.response?.modelId }, call, attempts);
}

/** Google's package takes a 200 with an error in it for an answer without words; the others throw what is thrown here. */
function mustBeNoError({ finishReason, response }: Generated): void {
  const body = response?.body as { error?: unknown } | undefined;
  if (finishReason.raw || !body?.error) return;
  const told = { statusCode: 200, responseBody: JSON.stringify(body) };
  throw Object.assign(new Error("an error in a 200"), told);
}
