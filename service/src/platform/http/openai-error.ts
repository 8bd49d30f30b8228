import type { ErrorCode, OpenAiError } from "@stoa/contract";
import { type ApiError, httpStatusOf } from "../../core/errors.ts";
import { headersOf, type RenderedResponse } from "./envelope.ts";

/** OpenAI's clients wait at most this long between attempts, so a longer Retry-After would bring them back too early. */
const MAX_WAIT_SECONDS = 60;

/** OpenAI's error shape, in responses and streams. */
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

/** The closest status that no client retries, where it is not 400. */
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
 * The status of an error whose repetition is useless or might be billed again. LangChain retries all but 400 to 407 and
 * 409, up to six times; the AI SDK retries 408, 409, 429 and 5xx, regardless of `X-Should-Retry`.
 */
export function openAiStatusOf(code: ErrorCode): number {
  const status = httpStatusOf(code);
  const isQuiet = status >= 400 && status <= 406;
  const isOurs = status === 429 || status >= 500;
  return nonRetriedStatuses[code] ?? (isQuiet || isOurs ? status : 400);
}

/** 406 also for an internal error after the run has started: it must not be retried. */
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

/** For stored errors: a retry would get the same. */
export const noRetryHeaders = { "x-should-retry": "false" };

/**
 * Without this header, clients retry any 409, 429 and 5xx twice, and a failed provider may bill each time. Errors with
 * Retry-After may be repeated.
 */
const mayBeRepeated = ({ retryAfterSeconds = Number.POSITIVE_INFINITY }: ApiError) =>
  retryAfterSeconds <= MAX_WAIT_SECONDS;
