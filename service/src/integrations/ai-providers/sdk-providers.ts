import { setTimeout as wait } from "node:timers/promises";
import { type AiProviders, defaultDeadlines, type ProviderAnswer, type ProviderId } from "./ai-provider.ts";
import { AnswerMemory } from "./answer-memory.ts";
import { streamWithDeadline } from "./stream.ts";
import { VERIFY_MS, verifyKey } from "./verify-key.ts";

export interface SdkProvidersOptions {
  /** Keeps the deadlines for connecting, the first byte and silence; its timeout errors carry `phase`. */
  fetch: typeof globalThis.fetch;
  /** Other addresses than the providers' own, for tests and proxies. A key's address goes first. */
  baseUrls?: Partial<Record<ProviderId, string>>;
  deadlines?: { totalMs: number };
  /** How long a provider may take to say whether it knows a key. */
  verifyMs?: number;
  /** What answers take of it is held while they come in. */
  answerMemory?: AnswerMemory;
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
    answerMemory: new AnswerMemory(),
    sleep: (ms, signal) => wait(ms, undefined, { signal }),
    random: Math.random,
    ...options,
  };
  return {
    run: (call) => collectAnswer(streamWithDeadline(providers, call)),
    stream: (call) => streamWithDeadline(providers, call),
    verify: (key, signal) => verifyKey(providers, key, signal),
  };
}

/**
 * A whole answer is asked for in pieces, too: a provider that thinks for minutes shows by its events that it is there, and
 * what an abandoned call has used is known.
 */
async function collectAnswer(
  pieces: AsyncGenerator<string, ProviderAnswer, undefined>,
): Promise<ProviderAnswer> {
  for (;;) {
    const { done, value } = await pieces.next();
    if (done) return value;
  }
}
