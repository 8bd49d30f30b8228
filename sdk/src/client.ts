import { AbortError, ConnectionError, StoaError, TimeoutError } from "./errors.ts";
import { readEvents, type StreamEvent } from "./event-stream.ts";
import { List } from "./list.ts";
import { type ApiResponse, Call, readData, readError, readForeign } from "./response.ts";
import { backoffMs, sleep } from "./sleep.ts";

export type { Call } from "./response.ts";

export interface StoaOptions {
  /** The address of the service: `https://shop.example/v1`. Without a path, `/v1` is added. */
  baseUrl: string;
  /**
   * An API key or an OAuth access token, or a function that is asked for it before each try. Without one, requests carry the browser's
   * session cookie.
   */
  apiKey?: string | (() => string | Promise<string>) | undefined;
  /** In place of the global `fetch`. */
  fetch?: typeof fetch | undefined;
  /** The limit of one try, until its response is complete. Default: 60,000; for runs of prompts 660,000. */
  timeoutMs?: number | undefined;
  /** How often a failed try is repeated. Default: 2. */
  maxRetries?: number | undefined;
}

/** What one call may set. */
export interface RequestOptions {
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  /** A POST sends a random key if this is not set. The service answers a repeat under the same key without doing the work again. */
  idempotencyKey?: string | undefined;
  headers?: Record<string, string> | undefined;
}

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";

/** The bytes of a file, with its media type. A stream is sent once: a failed try is not repeated. */
export interface RawContent {
  content: Blob | ArrayBuffer | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | string;
  /** Such as application/zip. Default: the type of the Blob. */
  type?: string | undefined;
}

/** What a request carries. */
export interface Sent {
  body?: object | undefined;
  /** Values are sent as text, lists with commas; undefined is left out. */
  query?: object | undefined;
  /** Fields of multipart/form-data. */
  form?: object | undefined;
  content?: RawContent | undefined;
  /** A POST without an Idempotency-Key, so it is not repeated: the service does not store its answer. */
  isUnkeyed?: true;
}

/** The types of events that end the stream of a run. */
export const RUN_ENDS: ReadonlySet<string> = new Set([
  "execution.completed",
  "execution.failed",
  "execution.canceled",
]);

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_RETRIES = 2;
/** The caller gets the error, and decides whether to wait longer. */
const MAX_RETRY_AFTER_SECONDS = 60;
const BACKOFF = { firstMs: 500, maxMs: 8_000 };

type RequestBody = NonNullable<RequestInit["body"]>;

/** A request that is ready to be sent, perhaps several times. */
interface Prepared {
  method: Method;
  url: URL;
  headers: Headers;
  body: RequestBody | undefined;
  canRepeat: boolean;
  options: RequestOptions;
}

/** Sends requests and repeats those that failed on the way. `Stoa` has the operations. */
export class Client {
  readonly baseUrl: string;
  /** The caller's limit of each try; undefined: the default of each operation. */
  readonly timeoutMs: number | undefined;
  readonly #apiKey: string | (() => string | Promise<string>) | undefined;
  readonly #fetch: typeof fetch;
  readonly #options: StoaOptions;

  constructor(options: StoaOptions) {
    this.baseUrl = toBaseUrl(options.baseUrl);
    this.timeoutMs = options.timeoutMs;
    this.#apiKey = typeof options.apiKey === "string" ? toHeaderValue(options.apiKey) : options.apiKey;
    // The global fetch of browsers and workers refuses another `this`.
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
    this.#options = options;
  }

  /** One object. */
  call<T>(method: Method, path: string, sent: Sent = {}, options?: RequestOptions): Call<T> {
    return new Call(this.#send<ApiResponse<T>>(this.#prepare(method, path, sent, options), readData));
  }

  /** A response in the shapes of another API. */
  foreign<T>(method: Method, path: string, sent: Sent = {}, options?: RequestOptions): Call<T> {
    return new Call(this.#send<ApiResponse<T>>(this.#prepare(method, path, sent, options), readForeign));
  }

  /** Items in pages, each fetched when it is needed. */
  list<T>(path: string, { query }: Sent = {}, options?: RequestOptions): List<T> {
    return new List((page) => this.call<T[]>("GET", path, { query: { ...query, ...page } }, options), query);
  }

  /** A response whose body is not read yet. */
  download(method: Method, path: string, sent: Sent = {}, options?: RequestOptions): Call<Response> {
    const read = async (response: Response) => ({ data: response, meta: null, response });
    return new Call(this.#send(this.#prepare(method, path, sent, options), read));
  }

  /** Server-sent events, from the beginning or after one of them. They go on after a broken connection. */
  async *events<T = unknown>(
    path: string,
    { query }: Sent = {},
    options: RequestOptions = {},
  ): AsyncGenerator<StreamEvent<T>> {
    yield* readEvents<T>({
      open: (lastEventId) => this.openStream("GET", path, { query }, withLastEventId(options, lastEventId)),
      isLast: ({ type }) => RUN_ENDS.has(type),
      maxReconnects: options.maxRetries ?? this.#options.maxRetries ?? DEFAULT_RETRIES,
      signal: options.signal,
    });
  }

  /** The response of a stream of events, as soon as its head is there. */
  openStream(method: Method, path: string, sent: Sent, options: RequestOptions): Promise<Response> {
    const headers = { accept: "text/event-stream", ...options.headers };
    const prepared = this.#prepare(method, path, sent, { ...options, headers });
    return this.#send(prepared, async (response) => response);
  }

  #prepare(method: Method, path: string, sent: Sent, options: RequestOptions = {}): Prepared {
    const headers = new Headers({ accept: "application/json", ...options.headers });
    const isRepeatablePost = method === "POST" && !path.startsWith("/api/") && !sent.isUnkeyed;
    if (isRepeatablePost && (options.idempotencyKey !== undefined || !headers.has("idempotency-key")))
      headers.set("idempotency-key", options.idempotencyKey ?? crypto.randomUUID());
    const ifMatch = headers.get("if-match");
    if (ifMatch !== null) headers.set("if-match", toStrongTags(ifMatch));
    const { body, type } = bodyOf(sent);
    if (type !== undefined) headers.set("content-type", type);
    const canRepeat = (method !== "POST" || isRepeatablePost) && !(body instanceof ReadableStream);
    return { method, url: urlOf(this.baseUrl, path, sent.query), headers, body, canRepeat, options };
  }

  async #send<T>(request: Prepared, read: (response: Response) => Promise<T>): Promise<T> {
    const retries = request.options.maxRetries ?? this.#options.maxRetries ?? DEFAULT_RETRIES;
    for (let attempt = 0; ; attempt++) {
      try {
        await this.#authorize(request.headers);
        return await this.#try(request, read);
      } catch (error) {
        const pauseMs = attempt < retries ? pauseAfter(error, attempt, request.canRepeat) : null;
        if (pauseMs === null) throw error;
        await sleep(pauseMs, request.options.signal);
      }
    }
  }

  async #authorize(headers: Headers): Promise<void> {
    const key = typeof this.#apiKey === "function" ? toHeaderValue(await this.#apiKey()) : this.#apiKey;
    if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
  }

  async #try<T>(
    { method, url, headers, body, options }: Prepared,
    read: (response: Response) => Promise<T>,
  ): Promise<T> {
    const timeoutMs = options.timeoutMs ?? this.timeoutMs ?? DEFAULT_TIMEOUT_MS;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), timeoutMs);
    const signal = options.signal ? AbortSignal.any([timeout.signal, options.signal]) : timeout.signal;
    try {
      // Not followed: another address must not get the key. Workers refuse "error".
      const init: RequestInit = { method, headers, signal, redirect: "manual" };
      if (body !== undefined) init.body = body;
      // Required by fetch for a body that is a stream.
      if (body instanceof ReadableStream) Object.assign(init, { duplex: "half" });
      if (this.#apiKey === undefined) init.credentials = "include";
      const response = await this.#fetch(url, init);
      if (!response.ok) throw await readError(response);
      return await read(response);
    } catch (error) {
      if (error instanceof StoaError) throw error;
      if (options.signal?.aborted) throw new AbortError("The call was aborted", { cause: error });
      if (timeout.signal.aborted)
        throw new TimeoutError(`${method} ${url.pathname}: no response within ${timeoutMs} ms`, {
          cause: error,
        });
      throw new ConnectionError(`${method} ${url}: ${reasonOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A group of operations on a client. */
export class Resource {
  protected readonly client: Client;

  constructor(client: Client) {
    this.client = client;
  }
}

/** One part of a path. An empty one, "." and ".." would name another resource. */
export function pathPart(id: string): string {
  if (!id || id === "." || id === "..") throw new TypeError(`An id must not be ${JSON.stringify(id)}`);
  return encodeURIComponent(id);
}

export const withLastEventId = (options: RequestOptions, lastEventId: string | null): RequestOptions =>
  lastEventId === null
    ? options
    : { ...options, headers: { ...options.headers, "last-event-id": lastEventId } };

function toBaseUrl(text: string): string {
  if (!URL.canParse(text) || !/^https?:/.test(text))
    throw new TypeError(
      `baseUrl must be a URL such as https://shop.example/v1, and is ${JSON.stringify(text)}`,
    );
  const url = new URL(text);
  const path = url.pathname.replace(/\/+$/, "");
  return `${url.origin}${path === "" ? "/v1" : path}`;
}

/** A copied key may end with a space or a line end. */
function toHeaderValue(apiKey: string): string {
  const key = apiKey.trim();
  if (key === "") throw new TypeError("apiKey is empty");
  if (!/^[\x21-\x7e]+$/.test(key)) throw new TypeError("apiKey has a character that no key has");
  return key;
}

/** A proxy that compresses a response weakens its tag, and If-Match never matches a weak one. The service's own are strong. */
const toStrongTags = (ifMatch: string): string => ifMatch.replaceAll(/(^|,\s*)W\/"/g, '$1"');

function urlOf(baseUrl: string, path: string, query: object = {}): URL {
  const url = new URL(baseUrl + path);
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
  return url;
}

function bodyOf({ body, form, content }: Sent): { body: RequestBody | undefined; type?: string | undefined } {
  if (content) {
    const type = content.type ?? (content.content instanceof Blob ? content.content.type : undefined);
    return { body: content.content, type: type || "application/octet-stream" };
  }
  if (!form) return body ? { body: JSON.stringify(body), type: "application/json" } : { body: undefined };
  const fields = new FormData();
  // The file last: the service reads the fields before it.
  const entries = Object.entries(form).filter(([, value]) => value !== undefined);
  for (const [name, value] of entries) if (!(value instanceof Blob)) fields.set(name, String(value));
  for (const [name, value] of entries) if (value instanceof Blob) fields.set(name, value);
  return { body: fields };
}

/** How long to wait before the next try; null: another try is of no use, or might do the work twice. */
function pauseAfter(error: unknown, attempt: number, canRepeat: boolean): number | null {
  if (!(error instanceof StoaError) || !error.isRetryable) return null;
  const { status, retryAfter } = error as { status?: number; retryAfter?: number | null };
  // A request that was refused for its rate was not carried out.
  if (!canRepeat && status !== 429) return null;
  if (retryAfter != null) return retryAfter > MAX_RETRY_AFTER_SECONDS ? null : retryAfter * 1_000;
  return backoffMs(attempt, BACKOFF);
}

/** Why fetch failed: the reason is in the cause. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
