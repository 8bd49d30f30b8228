import {
  type ApiError,
  ConnectionError,
  type ErrorDetails,
  toApiError,
  UnexpectedResponseError,
} from "./errors.ts";

/** Of every response in the envelope. */
export interface Meta {
  timestamp: string;
  request_id: string;
}

/** Of a list. */
export interface ListMeta extends Meta {
  page: number;
  limit: number;
  /** Exact, unless `totalIsEstimate`: then a lower bound. */
  total: number;
  totalIsEstimate?: true;
  /** The corrected search that was used in place of the one sent. */
  correctedSearch?: string;
  /** In lists of notifications: how many are unread. */
  unreadCount?: number;
  /** In the ledger entries of analytics: the sum of all of them. */
  sum?: number;
  [name: string]: unknown;
}

/** The service's requests left in the present window; null where a response does not say. */
export interface RateLimit {
  limit: number | null;
  remaining: number | null;
  /** Unix seconds. */
  reset: number | null;
}

export interface ApiResponse<T> {
  data: T;
  /** null: the response has no envelope. */
  meta: Meta | null;
  response: Response;
}

/** What `withResponse()` gives. */
export interface WithResponse<T> extends ApiResponse<T> {
  status: number;
  headers: Headers;
  requestId: string | null;
  rateLimit: RateLimit;
}

/** A call under way: await it for the data. */
export class Call<T> implements Promise<T> {
  readonly #response: Promise<ApiResponse<T>>;
  readonly [Symbol.toStringTag] = "Call";

  constructor(response: Promise<ApiResponse<T>>) {
    this.#response = response;
  }

  /** The data with the status, headers, request id and rate limit. */
  async withResponse(): Promise<WithResponse<T>> {
    const { data, meta, response } = await this.#response;
    const { status, headers } = response;
    const requestId = headers.get("x-request-id");
    return { data, meta, response, status, headers, requestId, rateLimit: rateLimitOf(headers) };
  }

  // biome-ignore lint/suspicious/noThenProperty: a call is a promise of its data
  then<A = T, B = never>(
    onData?: ((data: T) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#response.then(({ data }) => data).then(onData, onError);
  }

  catch<B = never>(onError?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, onError);
  }

  finally(onEnd?: (() => void) | null): Promise<T> {
    return this.then().finally(onEnd);
  }
}

function rateLimitOf(headers: Headers): RateLimit {
  const number = (name: string) => {
    const text = headers.get(`x-ratelimit-${name}`);
    return text === null ? null : Number(text);
  };
  return { limit: number("limit"), remaining: number("remaining"), reset: number("reset") };
}

/** `data` of the envelope. Its shape is not checked: a newer service may have more fields and values. */
export async function readData<T>(response: Response): Promise<ApiResponse<T>> {
  const body = (await readJson(response)) as { success?: unknown; data: T; meta: Meta };
  if (body?.success !== true) throw unexpected(response, "JSON that is not of this API");
  return { data: body.data, meta: body.meta, response };
}

export async function readForeign<T>(response: Response): Promise<ApiResponse<T>> {
  return { data: (await readJson(response)) as T, meta: null, response };
}

interface FailureBody {
  error?: { code?: string | null; message?: string; details?: ErrorDetails; docUrl?: string };
}

/** The error of a response that is no success. */
export async function readError(response: Response): Promise<ApiError | UnexpectedResponseError> {
  const { status, headers } = response;
  const text = await response.text();
  const target = headers.get("location");
  // In browsers, a redirect that is not followed has neither a status nor headers.
  if (target || response.type === "opaqueredirect")
    return unexpected(response, `a redirect to ${target ?? "another address"}`);
  const { error } = (parseJson(text) ?? {}) as FailureBody;
  if (!error?.message) return unexpected(response, describe(headers, text));
  return toApiError({
    status,
    code: error.code ?? "",
    message: error.message,
    details: error.details,
    docUrl: error.docUrl,
    requestId: headers.get("x-request-id"),
    retryAfter: retryAfterOf(headers),
  });
}

async function readJson(response: Response): Promise<unknown> {
  const text = await response.text();
  const json = parseJson(text);
  if (json !== undefined) return json;
  const isCut = /json/.test(response.headers.get("content-type") ?? "");
  if (isCut) throw new ConnectionError(`${response.url}: the response was cut off`);
  throw unexpected(response, describe(response.headers, text));
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function describe(headers: Headers, text: string): string {
  if (/^\s*</.test(text)) return "a page of HTML";
  const type = headers.get("content-type") ?? "no content type";
  return text === "" ? "an empty body" : `${type}: ${JSON.stringify(text.slice(0, 80))}`;
}

const unexpected = ({ url, status }: Response, what: string) =>
  new UnexpectedResponseError(
    `${url} answered ${status} with ${what}, not as the API does. Does baseUrl name the service, with /v1, and is a proxy in between?`,
    status,
  );

/** Seconds: the header has seconds or a date (RFC 9110, 10.2.3). */
function retryAfterOf(headers: Headers): number | null {
  const text = headers.get("retry-after");
  if (text === null) return null;
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1_000;
  return Number.isNaN(seconds) ? null : Math.max(0, seconds);
}
