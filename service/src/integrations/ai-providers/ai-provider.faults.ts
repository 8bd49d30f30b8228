import type { ErrorCode } from "@stoa/contract";
import {
  type ProviderCall,
  ProviderFault,
  type ProviderFaultFacts,
  type ProviderId,
  type timeoutPhases,
} from "./ai-provider.ts";
import { readUpstream, type Upstream } from "./ai-provider.upstream.ts";

/** When the same call may be made again: never, after a short random pause, or after what the provider asked for. */
export type Repeat = "never" | "soon" | "when-told";

export interface Failure {
  fault: ProviderFault;
  repeat: Repeat;
  /** The provider refused the call for the length of the answer that `capTokens` allows: it may be made again with this one. */
  capTokens?: number | undefined;
}

/** Told when a provider limits the rate and does not say for how long. */
export const UNTOLD_RETRY_AFTER_SECONDS = 10;

interface Verdict {
  code: ErrorCode;
  repeat?: Repeat;
  facts?: Partial<ProviderFaultFacts>;
  message?: string;
}

/** A kind of refusal, known by the provider's short code or, where it has none, by how its sentence runs. */
interface Refusal {
  codes: ReadonlySet<string>;
  words: RegExp;
  verdict: Verdict;
}

/** Anthropic's whole sentence, which it tells with 400 or in the middle of a stream. */
const OUTPUT_BLOCKED = /^output blocked by content filtering policy/;
const outputFiltered: Verdict = { code: "CONTENT_FILTERED", facts: { stage: "output" } };

/**
 * Asked in this order, as providers answer several of these with one status: OpenAI tells an empty account by 429,
 * Anthropic by 400, Google a wrong key by 400. The sentences may quote the prompt, so a prompt can at worst make
 * one refusal look like another; the one that marks a stored key as invalid is therefore tied to the beginning.
 */
const refusals: readonly Refusal[] = [
  {
    codes: new Set(["api_key_invalid", "invalid_api_key", "authentication_error"]),
    words: /^(incorrect api key provided|api key not valid)/,
    verdict: { code: "PROVIDER_KEY_INVALID" },
  },
  {
    codes: new Set([
      "insufficient_quota",
      "billing_error",
      "billing_not_active",
      "billing_hard_limit_reached",
      "insufficient_balance",
    ]),
    words:
      /credit balance is too low|insufficient (balance|credits)|credits are depleted|used all available credits|have any credits/,
    verdict: { code: "PROVIDER_QUOTA_EXHAUSTED" },
  },
  {
    codes: new Set([
      ...["content_filter", "content_policy_violation", "moderation_blocked", "invalid_prompt"],
      "data_inspection_failed",
    ]),
    words:
      /requires moderation|was flagged|content management policy|violates usage guidelines|rejected as a result of our safety system|^content exists risk/,
    verdict: { code: "CONTENT_FILTERED", facts: { stage: "input" } },
  },
  { codes: new Set(), words: OUTPUT_BLOCKED, verdict: outputFiltered },
  {
    codes: new Set(["context_length_exceeded", "exceed_context_size_error", "request_too_large", "3051"]),
    words:
      /maximum (context|prompt) length|prompt is too long|exceeds? (the )?(available )?context|exceed context limit|input token count.* exceeds|too large for model with/,
    verdict: { code: "CONTEXT_LENGTH_EXCEEDED" },
  },
  {
    codes: new Set(["model_not_found", "invalid_model", "model_decommissioned", "1500"]),
    words: /^(the )?model .{0,200}(does not exist|not found)|not a valid model|model not exist/,
    verdict: { code: "PROVIDER_NOT_SUPPORTED", facts: { reason: "model_not_found" } },
  },
  {
    codes: new Set(["rate_limit_exceeded", "rate_limit_error"]),
    words: /^rate limit/,
    verdict: { code: "PROVIDER_RATE_LIMITED", repeat: "when-told" },
  },
];

const byStatus: ReadonlyMap<number, Verdict> = new Map<number, Verdict>([
  [401, { code: "PROVIDER_KEY_INVALID" }],
  [402, { code: "PROVIDER_QUOTA_EXHAUSTED" }],
  [403, { code: "PROVIDER_PERMISSION_DENIED" }],
  [413, { code: "CONTEXT_LENGTH_EXCEEDED" }],
  [429, { code: "PROVIDER_RATE_LIMITED", repeat: "when-told" }],
]);

/** Makes our fault of whatever the SDK threw; nothing of the thrown object is kept but numbers. */
export function toFailure(
  thrown: unknown,
  call: { provider: ProviderId; model: string; options?: ProviderCall["options"] },
  attempts: number,
): Failure {
  const upstream = readUpstream(thrown);
  const { code, repeat = "never", facts, message } = judge(upstream, call.model);
  const fault = new ProviderFault(
    code,
    {
      provider: call.provider,
      attempts,
      ...(upstream.status === undefined ? {} : { status: upstream.status }),
      ...(code === "PROVIDER_RATE_LIMITED" ? { retryAfterSeconds: waitOf(upstream) } : {}),
      ...facts,
    },
    message,
  );
  return {
    fault,
    capTokens: lowerCap(upstream, call.options),
    repeat: repeat === "when-told" && upstream.retryAfterSeconds === undefined ? "never" : repeat,
  };
}

/** How providers name what is too long, in lower case. */
const ABOUT_MAX_TOKENS = /max_\w*tokens|maxoutputtokens|in the completion/;
/** Below that no maximum of a model lies. */
const LEAST_CAP = 500;
const CAP_DIVISOR = 8;

/** The largest number of the refusal that is below what was asked for is the model's maximum; some mean it exclusively. */
function lowerCap(
  { status, words }: Upstream,
  { maxTokens, capTokens }: ProviderCall["options"] = {},
): number | undefined {
  if (status !== 400 || maxTokens !== undefined || capTokens === undefined || !ABOUT_MAX_TOKENS.test(words))
    return undefined;
  const numbers = (words.match(/\d+/g) ?? []).map(Number);
  const told = Math.max(...numbers.filter((number) => number > LEAST_CAP && number < capTokens)) - 1;
  return Number.isFinite(told) ? told : Math.ceil(capTokens / CAP_DIVISOR);
}

const waitOf = (upstream: Upstream) => upstream.retryAfterSeconds ?? UNTOLD_RETRY_AFTER_SECONDS;

function judge(upstream: Upstream, model: string): Verdict {
  if (upstream.phase) return timedOut(upstream.phase);
  const { status } = upstream;
  if (status === undefined) return unanswered(upstream);
  if (status < 400) return toldIn200(upstream, model);
  if (status >= 500) return { code: "PROVIDER_ERROR", repeat: "soon" };
  const verdict = refusals.find((refusal) => says(upstream, refusal))?.verdict ?? byStatus.get(status);
  if (verdict?.facts?.reason === "model_not_found") return modelNotFound(model);
  if (verdict) return verdict;
  // Of a 404 in HTML only the address is to blame, so the model is not.
  return status === 404 && upstream.isJson ? modelNotFound(model) : refused(status);
}

/** Codes of a provider that failed itself, as they stand in a stream that had begun well. */
const failureCodes = new Set([
  ...["server_error", "api_error", "overloaded_error", "timeout_error"],
  ...["internal", "unavailable", "internal_server_error", "service_unavailable"],
]);

/** By its codes, or a whole sentence that is known: that of what is no refusal may be anything. */
function toldIn200(upstream: Upstream, model: string): Verdict {
  if (OUTPUT_BLOCKED.test(upstream.words)) return outputFiltered;
  if (upstream.codes.some((code) => failureCodes.has(code)))
    return { code: "PROVIDER_ERROR", repeat: "soon" };
  const known = refusals.find(({ codes }) => upstream.codes.some((code) => codes.has(code)));
  if (known?.verdict.facts?.reason === "model_not_found") return modelNotFound(model);
  return known?.verdict ?? { code: "PROVIDER_BAD_RESPONSE" };
}

/** Repeated for `connect` only: later the provider may have done the work already, and bills it. */
function timedOut(phase: (typeof timeoutPhases)[number]): Verdict {
  return { code: "PROVIDER_TIMEOUT", repeat: phase === "connect" ? "soon" : "never", facts: { phase } };
}

function unanswered({ isUnreached, isLost, isBlocked }: Upstream): Verdict {
  if (isUnreached)
    return { ...withoutAnswer("unreachable", "The provider could not be reached."), repeat: "soon" };
  if (isLost) return { code: "PROVIDER_BAD_RESPONSE" };
  if (isBlocked)
    return withoutAnswer("address_refused", "The key's baseUrl is an address that may not be called.");
  return withoutAnswer("call_failed", "The provider could not be called.");
}

function withoutAnswer(reason: string, message: string): Verdict {
  return { code: "PROVIDER_ERROR", facts: { reason }, message };
}

function says(upstream: Upstream, { codes, words }: Refusal): boolean {
  return upstream.codes.some((code) => codes.has(code)) || words.test(upstream.words);
}

/** The longest model name that a message repeats; the name is the caller's own word. */
const SHOWN_MODEL_LENGTH = 100;

function modelNotFound(model: string): Verdict {
  return {
    code: "PROVIDER_NOT_SUPPORTED",
    facts: { reason: "model_not_found" },
    message: `The provider does not offer the model ${model.slice(0, SHOWN_MODEL_LENGTH).toWellFormed()} to this key: choose another.`,
  };
}

/** Of a model that nobody was asked for, because no provider could offer it. */
export function noSuchModel({ provider, model }: { provider: ProviderId; model: string }): ProviderFault {
  const { code, facts, message } = modelNotFound(model);
  return new ProviderFault(code, { provider, attempts: 0, ...facts }, message);
}

function refused(status: number): Verdict {
  return {
    code: "PROVIDER_ERROR",
    facts: { reason: "request_refused" },
    message: `The provider refused the request with status ${status}.`,
  };
}
