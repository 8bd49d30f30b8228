import type { OpenAiError } from "@stoa/contract";
import { type ApiError, statusOf } from "../errors.ts";
import { headersOf, type Rendered } from "./envelope.ts";

/** As OpenAI's own clients wait between two tries at most; for more they would come too early. */
const LONGEST_WAIT_SECONDS = 60;

/** An error as OpenAI's clients read it, from an answer or from a stream. */
export function inOpenAiWords({ code, message, details }: Pick<ApiError, "code" | "message" | "details">) {
  const param = typeof details?.["field"] === "string" ? details["field"] : null;
  return { error: { message, type: typeOf(statusOf(code)), param, code, ...(details && { details }) } };
}

function typeOf(status: number): OpenAiError["error"]["type"] {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  return status < 500 && status !== 424 ? "invalid_request_error" : "api_error";
}

export const renderOpenAiError = (error: ApiError, challenge: string | null): Rendered<string> => ({
  status: error.status,
  body: JSON.stringify(inOpenAiWords(error)),
  headers: { ...headersOf(error, challenge), "x-should-retry": String(mayBeRepeated(error)) },
});

/** Of errors that are kept for a repeat: it would hear the same again. */
export const neverRepeated = { "x-should-retry": "false" };

/**
 * Without this header the clients would ask twice more after any 409, 429 and 5xx, and a provider that has failed may
 * bill each time. Whoever may come back is told when.
 */
const mayBeRepeated = ({ retryAfterSeconds = Number.POSITIVE_INFINITY }: ApiError) =>
  retryAfterSeconds <= LONGEST_WAIT_SECONDS;
