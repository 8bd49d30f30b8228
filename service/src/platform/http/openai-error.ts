import type { ErrorCode, OpenAiError } from "@stoa/contract";
import { type ApiError, httpStatusOf } from "../../core/errors.ts";
import { headersOf, type RenderedResponse } from "./envelope.ts";

/** As OpenAI's own clients wait between two tries at most; for more they would come too early. */
const MAX_WAIT_SECONDS = 60;

/** An error as OpenAI's clients read it, from an answer or from a stream. */
export function toOpenAiError({ code, message, details }: Pick<ApiError, "code" | "message" | "details">) {
  const param = typeof details?.["field"] === "string" ? details["field"] : null;
  return { error: { message, type: typeOf(httpStatusOf(code)), param, code, ...(details && { details }) } };
}

function typeOf(status: number): OpenAiError["error"]["type"] {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 && status !== 424 ? "invalid_request_error" : "api_error";
}

/** Where the nearest of the statuses that no client repeats is not simply 400. */
const nonRetriedStatuses: Partial<Record<ErrorCode, number>> = {
  PROVIDER_QUOTA_EXHAUSTED: 402,
  KEY_BUDGET_EXCEEDED: 402,
  PROVIDER_KEY_INVALID: 403,
  PROVIDER_PERMISSION_DENIED: 403,
  PRODUCT_UNAVAILABLE: 404,
  PROVIDER_ERROR: 406,
  PROVIDER_BAD_RESPONSE: 406,
  PROVIDER_TIMEOUT: 406,
};

/**
 * The status of an error that is in vain to repeat, or for which a provider may bill once more. LangChain repeats all but
 * 400 to 407 and 409, up to six times, and the AI SDK 408, 409, 429 and 5xx, whatever `X-Should-Retry` says.
 */
export function openAiStatusOf(code: ErrorCode): number {
  const status = httpStatusOf(code);
  const isQuiet = status >= 400 && status <= 406;
  const isOurs = status === 429 || status >= 500;
  return nonRetriedStatuses[code] ?? (isQuiet || isOurs ? status : 400);
}

/** A run that had begun is not repeated either, though it was we who failed. */
function wireStatusOf(error: ApiError): number {
  if (mayBeRepeated(error)) return error.status;
  const hasBegun = error.status >= 500 && error.details?.["executionId"] !== undefined;
  return hasBegun ? 406 : openAiStatusOf(error.code);
}

export const renderOpenAiError = (error: ApiError, challenge: string | null): RenderedResponse<string> => ({
  status: wireStatusOf(error),
  body: JSON.stringify(toOpenAiError(error)),
  headers: { ...headersOf(error, challenge), "x-should-retry": String(mayBeRepeated(error)) },
});

/** Of errors that are kept for a repeat: it would hear the same again. */
export const noRetryHeaders = { "x-should-retry": "false" };

/**
 * Without this header the clients would ask twice more after any 409, 429 and 5xx, and a provider that has failed may
 * bill each time. Whoever may come back is told when.
 */
const mayBeRepeated = ({ retryAfterSeconds = Number.POSITIVE_INFINITY }: ApiError) =>
  retryAfterSeconds <= MAX_WAIT_SECONDS;
