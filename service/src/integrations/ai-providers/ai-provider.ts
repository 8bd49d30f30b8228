import {
  type EmbeddingProvider,
  type ErrorCode,
  embeddingProviders,
  errorCatalogue,
  type Provider,
} from "@stoa/contract";
import type { OnItem } from "../../core/read-each.ts";

declare module "../../core/context.ts" {
  interface Integrations {
    ai: AiProviders;
  }
}

/** `sandbox` is built in and needs no key. */
export type ProviderId = Provider;

/** The model of a call without one; null: only the owner of the server knows its models. */
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

export const hasEmbeddings = (provider: ProviderId): provider is EmbeddingProvider =>
  (embeddingProviders as readonly ProviderId[]).includes(provider);

/** As `defaultModels`, for an embedding. */
export const defaultEmbeddingModels: Readonly<Record<EmbeddingProvider, string | null>> = {
  openai: "text-embedding-3-small",
  mistral: "mistral-embed",
  openrouter: "openai/text-embedding-3-small",
  ollama: "nomic-embed-text",
  "openai-compatible": null,
  sandbox: "sandbox",
};

/** The address of a provider whose key has no baseUrl; null: the key must have one. */
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

/** These serve any model, so their keys fit every product. */
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
  /** Only for `ollama` and `openai-compatible`; null: the provider's default address. */
  baseUrl: string | null;
}

export interface ProviderCall extends ProviderKey {
  model: string;
  messages: readonly Message[];
  options: {
    temperature?: number;
    maxTokens?: number;
    /** Limits the answer if the caller set no `maxTokens`. Lowered to the model's maximum when the provider reports it. */
    capTokens?: number | undefined;
  };
  /** Aborts the call, which then rejects with the signal's reason, as `fetch` does. */
  signal: AbortSignal;
  /** Limit of the whole call and of the provider's silence; undefined: the default deadlines. */
  timeoutMs?: number | undefined;
  progress?: CallProgress | undefined;
  /** The product version; only the sandbox's answer depends on it. */
  versionId?: string;
  /** The sandbox's answer, such as JSON where the step requires it. */
  sample?: string;
}

/** A request for the vectors of texts. */
export interface EmbeddingCall extends ProviderKey {
  model: string;
  /** 1 to MAX_EMBEDDED_TEXTS. */
  texts: readonly string[];
  signal: AbortSignal;
  timeoutMs?: number | undefined;
  progress?: CallProgress | undefined;
}

/** Of one call: Mistral's limit, the lowest. */
export const MAX_EMBEDDED_TEXTS = 32;

export class CallProgress {
  /** The provider has the request: it may bill for it. */
  isSent = false;
  /** UTF-8 bytes that the model has written so far, reasoning included. */
  outputBytes = 0;

  /** The attempt is not billed, so its progress does not count. */
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
  /** The provider's name of the model, which may be longer than the requested one (`gpt-5-mini-2025-08-07`). */
  model: string;
  finishReason: FinishReason;
  usage: TokenUsage;
  attempts: number;
}

export interface EmbeddingAnswer extends Pick<ProviderAnswer, "model" | "usage" | "attempts"> {
  /** In the order of the texts. All have the same number of dimensions, and a direction. */
  vectors: number[][];
}

/** `unreachable`: the provider did not respond, so the key may be valid. */
export type KeyStatus = "valid" | "invalid" | "unreachable";

/**
 * Receives a piece of an output. Nothing more is read from the provider before the last returned promise has resolved, which it must do when
 * the call is aborted; what was read before may follow at once.
 *
 * A function and no generator: of a chain of generators, each has a dozen promises that live until the next piece.
 */
export type OnPiece = OnItem<string>;

export interface AiProviders {
  /** Returns the answer or throws a ProviderError. Retries only attempts that are not billed. */
  run(call: ProviderCall): Promise<ProviderAnswer>;
  /** As `run`, but also passes the output on in pieces. Retries only before the first piece. */
  stream(call: ProviderCall, onPiece: OnPiece): Promise<ProviderAnswer>;
  /** Returns the vectors of texts or throws a ProviderError. Retries as `run` does. */
  embed(call: EmbeddingCall): Promise<EmbeddingAnswer>;
  /** Asks the provider whether the key is valid, without using tokens. */
  verify(key: ProviderKey, signal?: AbortSignal): Promise<KeyStatus>;
  /** Throws PROVIDER_UNAVAILABLE if a call would be refused now without being sent. */
  mustBeAvailable?(key: ProviderKey): void;
  close?(): Promise<void>;
}

export const timeoutPhases = ["connect", "first_byte", "idle", "total"] as const;
export type TimeoutPhase = (typeof timeoutPhases)[number];

export interface Deadlines {
  connectMs: number;
  firstByteMs: number;
  idleMs: number;
  totalMs: number;
}

/**
 * The guarded fetch enforces the first three, the call itself the last. Reasoning models may be silent for minutes, before and
 * after the first byte (docs/decisions/0050-deadlines-of-calls.md).
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
  /** The provider's HTTP status; undefined: no response. */
  status?: number;
  phase?: TimeoutPhase;
  retryAfterSeconds?: number;
  /** Separates the cases of one code, such as `model_not_found`. */
  reason?: string;
  stage?: "input" | "output";
  /** Usage that the provider reported without an answer. */
  usage?: TokenUsage;
}

/**
 * A call without an answer. Message and info contain only our texts and numbers. They never contain the prompt, the key or the
 * provider's text, which may quote both; so there is no `cause` either.
 */
export class ProviderError extends Error {
  readonly code: ErrorCode;
  readonly info: Readonly<ProviderErrorInfo>;

  constructor(code: ErrorCode, info: ProviderErrorInfo, message: string = errorCatalogue[code].message) {
    super(message);
    this.name = "ProviderError";
    this.code = code;
    this.info = info;
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

  get details(): Record<string, unknown> {
    const { usage: _, ...rest } = this.info;
    const source = this.code === "SERVICE_UNAVAILABLE" ? "marketplace" : "provider";
    return { source, ...rest };
  }
}

const BYTES_PER_TOKEN = 4;

/** An estimate of the tokens: a quarter of the UTF-8 bytes, rounded up. */
export const estimateTokens = (text: string) => Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);

/** Estimates the usage of an aborted call: its whole prompt, and the output so far. */
export function estimateAbandonedUsage(
  messages: readonly Message[],
  { outputBytes }: CallProgress,
): TokenUsage {
  const promptTokens = estimateTokens(messages.map(({ content }) => content).join("\n\n"));
  const completionTokens = Math.ceil(outputBytes / BYTES_PER_TOKEN);
  return { promptTokens, completionTokens, totalTokens: promptTokens + completionTokens, estimated: true };
}
