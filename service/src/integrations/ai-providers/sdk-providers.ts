import { setTimeout as wait } from "node:timers/promises";
import type { PostText } from "../egress/guarded-fetch.ts";
import { type AiProviders, defaultDeadlines, type ProviderId } from "./ai-provider.ts";
import { AnswerMemory } from "./answer-memory.ts";
import { postTextBy } from "./call-fetch.ts";
import { embedWithDeadline } from "./embeddings.ts";
import { streamWithDeadline } from "./stream.ts";
import { VERIFY_MS, verifyKey } from "./verify-key.ts";

export interface SdkProvidersOptions {
  /** Enforces the deadlines for connecting, the first byte and silence; its timeout errors have a `phase`. */
  fetch: typeof globalThis.fetch;
  /** The same for a text; default: by `fetch`. */
  postText?: PostText;
  /** Other addresses, for tests and proxies. The address of a key takes precedence. */
  baseUrls?: Partial<Record<ProviderId, string>>;
  deadlines?: { totalMs: number };
  verifyMs?: number;
  /** Counts the text of answers until they end. */
  answerMemory?: AnswerMemory;
  sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
  random?: () => number;
}

type SdkProviders = Required<SdkProvidersOptions>;

/**
 * Providers through the packages of the Vercel AI SDK, one for each wire format. Deadlines, retries and errors are ours: the SDK's
 * retries ignore Retry-After, and its errors contain the prompt.
 */
export function createSdkProviders(options: SdkProvidersOptions): AiProviders {
  const providers: SdkProviders = {
    postText: postTextBy(options.fetch),
    baseUrls: {},
    deadlines: defaultDeadlines,
    verifyMs: VERIFY_MS,
    answerMemory: new AnswerMemory(),
    sleep: (ms, signal) => wait(ms, undefined, { signal }),
    random: Math.random,
    ...options,
  };
  return {
    // Streams non-streaming calls too. The events show that a provider works during minutes of reasoning, and the usage of an aborted call
    // is known.
    run: (call) => streamWithDeadline(providers, call, () => undefined),
    stream: (call, onPiece) => streamWithDeadline(providers, call, onPiece),
    embed: (call) => embedWithDeadline(providers, call),
    verify: (key, signal) => verifyKey(providers, key, signal),
  };
}
