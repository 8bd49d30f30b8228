import { type TimeoutPhase, timeoutPhases } from "./ai-provider.ts";
import { hasManyParts } from "./many-parts.ts";

/**
 * The safe parts of an error of the SDK or `fetch`. Only `message` may quote the prompt or the key; it is compared and never shown.
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
  /** No connection was made, so the provider did not get the call. */
  isUnreachable: boolean;
  /** The response is incomplete: the connection broke, it was not HTTP, or it was too large. */
  isLost: boolean;
  /** Our egress guard refused the address. */
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

// A fetch without our deadlines (tests, other runtimes) has those of undici.
const phaseOfCode: ReadonlyMap<unknown, TimeoutPhase> = new Map<unknown, TimeoutPhase>([
  ["UND_ERR_CONNECT_TIMEOUT", "connect"],
  ["ETIMEDOUT", "connect"],
  ["UND_ERR_HEADERS_TIMEOUT", "first_byte"],
  ["UND_ERR_BODY_TIMEOUT", "idle"],
]);

/** The error of a provider, instead of an answer or in its stream. Only its codes are read. */
export class ErrorResponseFound extends Error {
  readonly statusCode: number;
  readonly responseBody: string;
  readonly responseHeaders: Record<string, string>;
  constructor(statusCode: number, responseBody: string, responseHeaders: Record<string, string> = {}) {
    super("the provider sent an error");
    this.statusCode = statusCode;
    this.responseBody = responseBody;
    this.responseHeaders = responseHeaders;
  }
}

/** Fields of APICallError, recognized by shape, so that this module does not load the SDK. */
interface CallError {
  statusCode?: unknown;
  responseHeaders?: Record<string, string>;
  responseBody?: unknown;
}

const isCallError = (error: unknown) => typeof error === "object" && error !== null && "statusCode" in error;

/** An error after the response headers belongs to that response. `status`: the provider's. */
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

/** A host with several addresses has one error for each. */
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

interface ErrorBody {
  code?: unknown;
  type?: unknown;
  status?: unknown;
  message?: unknown;
  error?: unknown;
  detail?: unknown;
  details?: unknown;
  /** Google's, in an element of `details`. */
  reason?: unknown;
  retryDelay?: unknown;
}

/** OpenAI-like providers, Anthropic and Google wrap it in `error`. Mistral does not wrap it, and xAI's `error` is the message. */
function parseBody(text: unknown): ErrorBody | undefined {
  if (typeof text !== "string" || hasManyParts(text)) return undefined;
  try {
    const parsed: unknown = JSON.parse(text);
    // Google's streaming endpoint wraps its error in a list.
    const object = Array.isArray(parsed) ? parsed[0] : parsed;
    if (!isObject(object)) return undefined;
    return isObject(object.error) ? object.error : object;
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is ErrorBody => typeof value === "object" && value !== null;

/** OpenRouter may respond 200 with the error's status inside. */
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

/** Any user may run the server, and many patterns search this text. */
const MAX_MESSAGE_LENGTH = 2_000;

function messageOf(body: ErrorBody | undefined): string {
  const found = [body?.message, body?.error, body?.detail].find((words) => typeof words === "string");
  return typeof found === "string" ? found.slice(0, MAX_MESSAGE_LENGTH).toLowerCase() : "";
}

const detailsOf = ({ details }: ErrorBody): ErrorBody[] =>
  Array.isArray(details) ? details.filter(isObject) : [];

/** One day: longer waits are useless and may exceed a header. */
const MAX_RETRY_AFTER_SECONDS = 86_400;

function retryAfterOf(headers: Record<string, string>, body: ErrorBody | undefined): number | undefined {
  const found = [
    Number.parseFloat(headers["retry-after-ms"] ?? "") / 1000,
    secondsOf(headers["retry-after"]),
    ...(body ? detailsOf(body) : []).map(({ retryDelay }) => Number.parseFloat(String(retryDelay))),
  ];
  const seconds = found.find((value) => Number.isFinite(value) && value >= 0);
  return seconds === undefined ? undefined : Math.min(Math.ceil(seconds), MAX_RETRY_AFTER_SECONDS);
}

/** `Retry-After` is seconds or a date; a negative number is invalid. */
function secondsOf(header: string | undefined): number {
  if (header === undefined || !/^(\d|[a-z]{3})/i.test(header.trim())) return Number.NaN;
  if (/^\d+(\.\d+)?$/.test(header.trim())) return Number(header);
  return Math.max(0, (Date.parse(header) - Date.now()) / 1000);
}
