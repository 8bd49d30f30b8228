import { type TimeoutPhase, timeoutPhases } from "./ai-provider.ts";

/**
 * What is left of an error of the SDK or of `fetch` when everything that can quote the prompt or the key is gone, but
 * for `words`, which are only compared and never told.
 */
export interface UpstreamError {
  status: number | undefined;
  phase: TimeoutPhase | undefined;
  retryAfterSeconds: number | undefined;
  /** The short codes of the provider's JSON, in lower case. */
  codes: string[];
  /** The provider's sentence, in lower case. */
  message: string;
  isJson: boolean;
  /** No connection came about, so the provider knows nothing of the call. */
  isUnreachable: boolean;
  /** What came was no whole answer: the connection was lost, or it was not HTTP, or more than we take. */
  isLost: boolean;
  /** The guard of our own `fetch` did not let the call out. */
  isBlocked: boolean;
}

const unreachedCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
const lostCodes = new Set([
  "ECONNRESET",
  "EPIPE",
  "UND_ERR_SOCKET",
  "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  "INVALID_RESPONSE",
  "HEADERS_TOO_LARGE",
  "RESPONSE_TOO_LARGE",
]);

// A fetch without deadlines of ours (tests, other runtimes) still has undici's own.
const phaseOfCode: ReadonlyMap<unknown, TimeoutPhase> = new Map<unknown, TimeoutPhase>([
  ["UND_ERR_CONNECT_TIMEOUT", "connect"],
  ["ETIMEDOUT", "connect"],
  ["UND_ERR_HEADERS_TIMEOUT", "first_byte"],
  ["UND_ERR_BODY_TIMEOUT", "idle"],
]);

/** The fields that we read of APICallError; told by shape, so that knowing an error does not load the SDK. */
interface CallError {
  statusCode?: unknown;
  responseHeaders?: Record<string, string>;
  responseBody?: unknown;
}

const isCallError = (error: unknown) => typeof error === "object" && error !== null && "statusCode" in error;

/** Whatever breaks behind the headers of an answer is that answer's fault. `status`: the provider's, once it has answered. */
export const withResponseStatus = (status: number | undefined, error: unknown): unknown =>
  status === undefined || isCallError(error) ? error : { cause: error, statusCode: status };

export function readUpstreamError(thrown: unknown): UpstreamError {
  const chain = causesOf(thrown);
  const call = chain.find((error): error is ErrorCause & CallError => "statusCode" in error) ?? {};
  const body = parseBody(call.responseBody);
  return {
    status: statusOf(call, body),
    phase: chain.map(phaseOf).find((phase) => phase !== undefined),
    retryAfterSeconds: retryAfterOf(call.responseHeaders ?? {}, body),
    codes: codesOf(body),
    message: messageOf(body),
    isJson: body !== undefined,
    isUnreachable: chain.some(({ code }) => unreachedCodes.has(String(code))),
    isLost: chain.some(({ code }) => lostCodes.has(String(code))),
    isBlocked: chain.some(({ name }) => name === "BlockedTarget"),
  };
}

interface ErrorCause {
  name?: unknown;
  code?: unknown;
  phase?: unknown;
  cause?: unknown;
  errors?: unknown;
}

const MAX_CAUSES = 10;

/** The error and its causes. A host with several addresses fails with one error for each: they are causes too. */
function causesOf(thrown: unknown): ErrorCause[] {
  const chain: ErrorCause[] = [];
  const open: unknown[] = [thrown];
  while (open.length > 0 && chain.length < MAX_CAUSES) {
    const error = open.shift();
    if (typeof error !== "object" || error === null) continue;
    chain.push(error);
    const { cause, errors } = error as ErrorCause;
    open.push(cause, ...(Array.isArray(errors) ? errors : []));
  }
  return chain;
}

function phaseOf({ phase, code }: ErrorCause): TimeoutPhase | undefined {
  return timeoutPhases.find((known) => known === phase) ?? phaseOfCode.get(code);
}

/** The fault as the provider's JSON tells it, wherever that provider puts it. */
interface ErrorBody {
  code?: unknown;
  type?: unknown;
  status?: unknown;
  message?: unknown;
  error?: unknown;
  detail?: unknown;
  details?: unknown;
  /** Google's, in one of the `details`. */
  reason?: unknown;
  retryDelay?: unknown;
}

/** OpenAI and its kin, Anthropic and Google wrap an `error`; Mistral tells it bare; xAI's `error` is the sentence. */
function parseBody(text: unknown): ErrorBody | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    // Google's streaming door wraps its error in a list.
    const whole = Array.isArray(parsed) ? parsed[0] : parsed;
    if (!isObject(whole)) return undefined;
    return isObject(whole.error) ? whole.error : whole;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is ErrorBody => typeof value === "object" && value !== null;

/** OpenRouter may answer 200 and tell the status of the fault inside. */
function statusOf(call: CallError, body: ErrorBody | undefined): number | undefined {
  if (typeof call.statusCode !== "number") return undefined;
  const inside = body?.code;
  const isFaultInside = typeof inside === "number" && inside >= 400 && inside < 600;
  return call.statusCode < 400 && isFaultInside ? inside : call.statusCode;
}

function codesOf(body: ErrorBody | undefined): string[] {
  if (!body) return [];
  const reasons = detailsOf(body).map((detail) => detail.reason);
  return [body.code, body.type, body.status, ...reasons]
    .filter((code) => typeof code === "string" || typeof code === "number")
    .map((code) => String(code).toLowerCase());
}

/** Whoever runs the server writes it, and it is searched for many patterns: past this no refusal says what it is. */
const MAX_MESSAGE_LENGTH = 2_000;

function messageOf(body: ErrorBody | undefined): string {
  const told = [body?.message, body?.error, body?.detail].find((words) => typeof words === "string");
  return typeof told === "string" ? told.slice(0, MAX_MESSAGE_LENGTH).toLowerCase() : "";
}

const detailsOf = ({ details }: ErrorBody): ErrorBody[] =>
  Array.isArray(details) ? details.filter(isObject) : [];

/** A day: who says more says nothing that anybody could wait for, or that a header could hold. */
const MAX_RETRY_AFTER_SECONDS = 86_400;

function retryAfterOf(headers: Record<string, string>, body: ErrorBody | undefined): number | undefined {
  const told = [
    Number.parseFloat(headers["retry-after-ms"] ?? "") / 1000,
    secondsOf(headers["retry-after"]),
    ...(body ? detailsOf(body) : []).map(({ retryDelay }) => Number.parseFloat(String(retryDelay))),
  ];
  const seconds = told.find((value) => Number.isFinite(value) && value >= 0);
  return seconds === undefined ? undefined : Math.min(Math.ceil(seconds), MAX_RETRY_AFTER_SECONDS);
}

/** `Retry-After` is a number of seconds or a date; a negative number is neither. */
function secondsOf(header: string | undefined): number {
  if (header === undefined || !/^(\d|[a-z]{3})/i.test(header.trim())) return Number.NaN;
  if (/^\d+(\.\d+)?$/.test(header.trim())) return Number(header);
  return Math.max(0, (Date.parse(header) - Date.now()) / 1000);
}
