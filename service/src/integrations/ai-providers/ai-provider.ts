import { type ErrorCode, errorCatalogue, type Provider } from "@stoa/contract";

declare module "../../core/context.ts" {
  interface Integrations {
    ai: AiProviders;
  }
}

/** Every provider that a stored key can belong to; `sandbox` is built in and needs no key. */
export type ProviderId = Provider;

/** The model of a call that names none; null where only the owner of the server knows what it holds. */
export const defaultModels: Readonly<Record<ProviderId, string | null>> = {
  openai: "gpt-5-mini",
  anthropic: "claude-sonnet-5",
  google: "gemini-3.5-flash",
  mistral: "mistral-small-latest",
  groq: "openai/gpt-oss-120b",
  deepseek: "deepseek-v4-flash",
  xai: "grok-4.3",
  openrouter: "openai/gpt-5-mini",
  ollama: "llama3.2",
  "openai-compatible": null,
  sandbox: "sandbox",
};

/** Where a provider answers, unless a key names its own address; null where the key must. */
export const defaultBaseUrls: Readonly<Record<Exclude<ProviderId, "sandbox">, string | null>> = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com/v1",
  google: "https://generativelanguage.googleapis.com/v1beta",
  mistral: "https://api.mistral.ai/v1",
  groq: "https://api.groq.com/openai/v1",
  deepseek: "https://api.deepseek.com/v1",
  xai: "https://api.x.ai/v1",
  openrouter: "https://openrouter.ai/api/v1",
  ollama: "http://127.0.0.1:11434/v1",
  "openai-compatible": null,
};

/** Doors to any model: their keys run every product, whatever it says that it is compatible with. */
export const anyModelProviders: ReadonlySet<string> = new Set<ProviderId>([
  "sandbox",
  "ollama",
  "openrouter",
  "openai-compatible",
]);

export const messageRoles = ["system", "user", "assistant"] as const;

export interface Message {
  role: (typeof messageRoles)[number];
  content: string;
}

export interface ProviderKey {
  provider: ProviderId;
  apiKey: string;
  /** Of `ollama` and `openai-compatible` keys; null takes the provider's own address. */
  baseUrl: string | null;
}

export interface ProviderCall extends ProviderKey {
  model: string;
  messages: readonly Message[];
  options: {
    temperature?: number;
    maxTokens?: number;
    /** Stands in for `maxTokens` where the caller named none; lowered to what the provider says that the model takes. */
    capTokens?: number | undefined;
  };
  /** Gives the call up. The run then rejects with the signal's reason, as `fetch` does. */
  signal: AbortSignal;
  /** How long it may take in all, and its provider may be silent; undefined: the deadlines of all calls. */
  timeoutMs?: number | undefined;
  /** Is told how far the call comes. */
  progress?: CallProgress | undefined;
  /** The product version that runs; the sandbox's answer depends on it, other providers never see it. */
  versionId?: string;
  /** What the sandbox says in the place of words of its own: JSON, where that is asked for. */
  sample?: string;
}

/** How far a call has come, so that one that is abandoned is counted for what it used. */
export class CallProgress {
  /** The provider has the request: it may bill for it. */
  isSent = false;
  /** UTF-8 bytes that the model has written so far, reasoning included. */
  outputBytes = 0;

  /** The attempt came to nothing that anybody bills. */
  reset(): void {
    this.isSent = false;
    this.outputBytes = 0;
  }
}

export type FinishReason = "stop" | "length" | "content_filter" | "other";

export interface TokenUsage {
  /** All input tokens, cached ones included. */
  promptTokens: number;
  /** All output tokens, reasoning included. */
  completionTokens: number;
  totalTokens: number;
  cachedTokens?: number;
  cacheWriteTokens?: number;
  reasoningTokens?: number;
  /** The provider did not count; the numbers are ours. */
  estimated?: true;
}

export interface ProviderAnswer {
  output: string;
  /** As the provider names it, which may be longer than what was asked for (`gpt-5-mini-2025-08-07`). */
  model: string;
  finishReason: FinishReason;
  usage: TokenUsage;
  /** Calls made, the one that succeeded included. */
  attempts: number;
}

/** `unreachable`: nothing is known about the key, the provider did not say. */
export type KeyStatus = "valid" | "invalid" | "unreachable";

/** What the service needs of AI providers. */
export interface AiProviders {
  /** One answer or a ProviderFault; retries what may be repeated without billing anyone twice. */
  run(call: ProviderCall): Promise<ProviderAnswer>;
  /**
   * The same, piece by piece as it comes; returns the answer when it is whole, or throws a ProviderFault, however much
   * came before. Repeats only while nothing has come. Nothing is read of the provider while nobody asks for the next piece.
   */
  stream(call: ProviderCall): AsyncGenerator<string, ProviderAnswer, undefined>;
  /** Asks the provider whether it knows the key, without spending tokens. */
  verify(key: ProviderKey, signal?: AbortSignal): Promise<KeyStatus>;
  /** Throws PROVIDER_UNAVAILABLE where a call would be refused now, before anything was sent. */
  mustBeAvailable?(key: ProviderKey): void;
  close?(): Promise<void>;
}

/** The part of a call whose deadline passed. */
export const timeoutPhases = ["connect", "first_byte", "idle", "total"] as const;
export type TimeoutPhase = (typeof timeoutPhases)[number];

export interface Deadlines {
  connectMs: number;
  firstByteMs: number;
  idleMs: number;
  totalMs: number;
}

/**
 * The first three are kept by the fetch that the providers are given, the last by the call itself. Reasoning models may
 * say nothing for minutes, before the first byte and after it (docs/decisions/0050-deadlines-of-calls.md).
 */
export const defaultDeadlines: Deadlines = {
  connectMs: 5_000,
  firstByteMs: 300_000,
  idleMs: 300_000,
  totalMs: 600_000,
};

export interface ProviderErrorInfo {
  provider: ProviderId;
  attempts: number;
  /** The provider's HTTP status, if it answered. */
  status?: number;
  phase?: TimeoutPhase;
  retryAfterSeconds?: number;
  /** A word of ours that tells cases of one code apart, such as `model_not_found`. */
  reason?: string;
  /** Whether the provider filtered what went in or what came out. */
  stage?: "input" | "output";
  /** What the provider counted although it gave no answer. */
  usage?: TokenUsage;
}

/**
 * A provider that gave no answer. Message and facts are words of ours and numbers: never the prompt, the key or what
 * the provider wrote, since providers quote both. It has no `cause` for the same reason.
 */
export class ProviderError extends Error {
  readonly code: ErrorCode;
  readonly info: Readonly<ProviderErrorInfo>;

  constructor(code: ErrorCode, facts: ProviderErrorInfo, message: string = errorCatalogue[code].message) {
    super(message);
    this.name = "ProviderFault";
    this.code = code;
    this.info = facts;
  }

  get provider(): ProviderId {
    return this.info.provider;
  }

  get attempts(): number {
    return this.info.attempts;
  }

  /** Seconds, sent as `Retry-After`. */
  get retryAfterSeconds(): number | undefined {
    return this.info.retryAfterSeconds;
  }

  /** The `details` of the API's error. */
  get details(): Record<string, unknown> {
    const { usage: _, ...told } = this.info;
    const source = this.code === "SERVICE_UNAVAILABLE" ? "marketplace" : "provider";
    return { source, ...told };
  }
}

const BYTES_PER_TOKEN = 4;

/** Tokens by rule of thumb, where nobody counts them: a quarter of the UTF-8 bytes, rounded up. */
export const estimateTokens = (text: string) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

/** What an abandoned call has used by our estimate: its whole prompt, and what the model had written. */
export function estimateAbandonedUsage(
  messages: readonly Message[],
  { outputBytes }: CallProgress,
): TokenUsage {
  const promptTokens = estimateTokens(messages.map(({ content }) => content).join("\n\n"));
  const completionTokens = Math.ceil(outputBytes / BYTES_PER_TOKEN);
  return { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens, estimated: true };
}
