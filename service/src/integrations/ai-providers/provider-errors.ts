import type { ErrorCode } from "@stoa/contract";
import {
  type ProviderCall,
  ProviderError,
  type ProviderErrorInfo,
  type ProviderId,
  type timeoutPhases,
} from "./ai-provider.ts";
import { readUpstreamError, type UpstreamError } from "./upstream-error.ts";

export type RetryPolicy = "never" | "backoff" | "retry-after";

export interface CallFailure {
  error: ProviderError;
  retry: RetryPolicy;
  /** A lower limit with which the call may be repeated, after the provider refused `capTokens`. */
  capTokens?: number | undefined;
}

/** For rate limits without Retry-After. */
export const DEFAULT_RETRY_AFTER_SECONDS = 10;

interface ErrorClass {
  code: ErrorCode;
  retry?: RetryPolicy;
  info?: Partial<ProviderErrorInfo>;
  message?: string;
}

/** A kind of refusal, recognized by the provider's error code or else by its message. */
interface KnownRefusal {
  codes: ReadonlySet<string>;
  message: RegExp;
  errorClass: ErrorClass;
}

/** Anthropic's message, with status 400 or in a stream. */
const OUTPUT_BLOCKED = /^output blocked by content filtering policy/;
const outputFiltered: ErrorClass = { code: "CONTENT_FILTERED", info: { stage: "output" } };

/**
 * In this order, because providers use one status for several: 429 for OpenAI's empty account, 400 for Google's wrong key. Messages
 * may quote the prompt, so a prompt can fake a kind. The pattern that invalidates a stored key therefore matches only the
 * beginning.
 */
const knownRefusals: readonly KnownRefusal[] = [
  {
    codes: new Set(["api_key_invalid", "invalid_api_key", "authentication_error"]),
    message: /^(incorrect api key provided|api key not valid)/,
    errorClass: { code: "PROVIDER_KEY_INVALID" },
  },
  {
    codes: new Set([
      "insufficient_quota",
      "billing_error",
      "billing_not_active",
      "billing_hard_limit_reached",
      "insufficient_balance",
    ]),
    message:
      /credit balance is too low|insufficient (balance|credits)|credits are depleted|used all available credits|have any credits/,
    errorClass: { code: "PROVIDER_QUOTA_EXHAUSTED" },
  },
  {
    codes: new Set([
      ...["content_filter", "content_policy_violation", "moderation_blocked", "invalid_prompt"],
      "data_inspection_failed",
    ]),
    message:
      /requires moderation|was flagged|content management policy|violates usage guidelines|rejected as a result of our safety system|^content exists risk/,
    errorClass: { code: "CONTENT_FILTERED", info: { stage: "input" } },
  },
  { codes: new Set(), message: OUTPUT_BLOCKED, errorClass: outputFiltered },
  {
    codes: new Set(["context_length_exceeded", "exceed_context_size_error", "request_too_large", "3051"]),
    message:
      /maximum (context|prompt) length|prompt is too long|exceeds? (the )?(available )?context|exceed context limit|input token count.* exceeds|too large for model with/,
    errorClass: { code: "CONTEXT_LENGTH_EXCEEDED" },
  },
  {
    codes: new Set(["model_not_found", "invalid_model", "model_decommissioned", "1500"]),
    message: /^(the )?model .{0,200}(does not exist|not found)|not a valid model|model not exist/,
    errorClass: { code: "PROVIDER_NOT_SUPPORTED", info: { reason: "model_not_found" } },
  },
  {
    codes: new Set(["rate_limit_exceeded", "rate_limit_error"]),
    message: /^rate limit/,
    errorClass: { code: "PROVIDER_RATE_LIMITED", retry: "retry-after" },
  },
];

const byStatus: ReadonlyMap<number, ErrorClass> = new Map<number, ErrorClass>([
  [401, { code: "PROVIDER_KEY_INVALID" }],
  [402, { code: "PROVIDER_QUOTA_EXHAUSTED" }],
  [403, { code: "PROVIDER_PERMISSION_DENIED" }],
  [413, { code: "CONTEXT_LENGTH_EXCEEDED" }],
  [429, { code: "PROVIDER_RATE_LIMITED", retry: "retry-after" }],
]);

export function toFailure(
  thrown: unknown,
  call: { provider: ProviderId; model: string; options?: ProviderCall["options"] },
  attempts: number,
): CallFailure {
  const upstream = readUpstreamError(thrown);
  const { code, retry = "never", info, message } = classifyError(upstream, call.model);
  const error = new ProviderError(
    code,
    {
      provider: call.provider,
      attempts,
      ...(upstream.status === undefined ? {} : { status: upstream.status }),
      ...(code === "PROVIDER_RATE_LIMITED" ? { retryAfterSeconds: retryAfterOf(upstream) } : {}),
      ...info,
    },
    message,
  );
  return {
    error,
    capTokens: lowerCap(upstream, call.options),
    retry: retry === "retry-after" && upstream.retryAfterSeconds === undefined ? "never" : retry,
  };
}

/** How providers name the limit, in lower case. */
const MAX_TOKENS_MESSAGE = /max_\w*tokens|maxoutputtokens|in the completion/;
/** No model has a lower maximum. */
const MIN_CAP = 500;
const CAP_DIVISOR = 8;

/** The largest number below the request in the message is the model's maximum, for some providers exclusively. */
function lowerCap(
  { status, message }: UpstreamError,
  { maxTokens, capTokens }: ProviderCall["options"] = {},
): number | undefined {
  if (
    status !== 400 ||
    maxTokens !== undefined ||
    capTokens === undefined ||
    !MAX_TOKENS_MESSAGE.test(message)
  )
    return undefined;
  const numbers = (message.match(/\d+/g) ?? []).map(Number);
  const limit = Math.max(...numbers.filter((number) => number > MIN_CAP && number < capTokens)) - 1;
  return Number.isFinite(limit) ? limit : Math.ceil(capTokens / CAP_DIVISOR);
}

const retryAfterOf = (upstream: UpstreamError) => upstream.retryAfterSeconds ?? DEFAULT_RETRY_AFTER_SECONDS;

function classifyError(upstream: UpstreamError, model: string): ErrorClass {
  if (upstream.phase) return classifyTimeout(upstream.phase);
  const { status } = upstream;
  if (status === undefined) return classifyNoResponse(upstream);
  if (status < 400) return classifyErrorIn200(upstream, model);
  if (status >= 500) return { code: "PROVIDER_ERROR", retry: "backoff" };
  const knownRefusal =
    knownRefusals.find((refusal) => matches(upstream, refusal))?.errorClass ?? byStatus.get(status);
  if (knownRefusal?.info?.reason === "model_not_found") return modelNotFound(model);
  if (knownRefusal) return knownRefusal;
  // A 404 in HTML means a wrong address, not an unknown model.
  return status === 404 && upstream.isJson ? modelNotFound(model) : refused(status);
}

/** Error codes of the provider's own failures, which may come in a stream that began well. */
const failureCodes = new Set([
  ...["server_error", "api_error", "overloaded_error", "timeout_error"],
  ...["internal", "unavailable", "internal_server_error", "service_unavailable"],
]);

/** Only codes and one known message, because the text of another event may be anything. */
function classifyErrorIn200(upstream: UpstreamError, model: string): ErrorClass {
  if (OUTPUT_BLOCKED.test(upstream.message)) return outputFiltered;
  if (upstream.codes.some((code) => failureCodes.has(code)))
    return { code: "PROVIDER_ERROR", retry: "backoff" };
  const knownRefusal = knownRefusals.find(({ codes }) => upstream.codes.some((code) => codes.has(code)));
  if (knownRefusal?.errorClass.info?.reason === "model_not_found") return modelNotFound(model);
  return knownRefusal?.errorClass ?? { code: "PROVIDER_BAD_RESPONSE" };
}

/** Only `connect` is retried: later the provider may have done the work and bills it. */
function classifyTimeout(phase: (typeof timeoutPhases)[number]): ErrorClass {
  return { code: "PROVIDER_TIMEOUT", retry: phase === "connect" ? "backoff" : "never", info: { phase } };
}

function classifyNoResponse({ isUnreachable, isLost, isBlocked }: UpstreamError): ErrorClass {
  if (isUnreachable)
    return { ...noResponse("unreachable", "The provider could not be reached."), retry: "backoff" };
  if (isLost) return { code: "PROVIDER_BAD_RESPONSE" };
  if (isBlocked)
    return noResponse("address_refused", "The key's baseUrl is an address that may not be called.");
  return noResponse("call_failed", "The provider could not be called.");
}

function noResponse(reason: string, message: string): ErrorClass {
  return { code: "PROVIDER_ERROR", info: { reason }, message };
}

function matches(upstream: UpstreamError, { codes, message }: KnownRefusal): boolean {
  return upstream.codes.some((code) => codes.has(code)) || message.test(upstream.message);
}

/** The model name is the caller's text, so the message may contain a part of it. */
const SHOWN_MODEL_LENGTH = 100;

function modelNotFound(model: string): ErrorClass {
  return {
    code: "PROVIDER_NOT_SUPPORTED",
    info: { reason: "model_not_found" },
    message: `The provider does not offer the model ${model.slice(0, SHOWN_MODEL_LENGTH).toWellFormed()} to this key: choose another.`,
  };
}

/** For a model name that is invalid for every provider; no call was made. */
export function modelNotFoundError({
  provider,
  model,
}: {
  provider: ProviderId;
  model: string;
}): ProviderError {
  const { code, info, message } = modelNotFound(model);
  return new ProviderError(code, { provider, attempts: 0, ...info }, message);
}

function refused(status: number): ErrorClass {
  return {
    code: "PROVIDER_ERROR",
    info: { reason: "request_refused" },
    message: `The provider refused the request with status ${status}.`,
  };
}
