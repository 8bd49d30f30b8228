import { lookup } from "node:dns/promises";
import { isIP, isIPv4, type Socket } from "node:net";
import type { Agent, buildConnector, Dispatcher } from "undici";
import {
  type EgressGuard,
  findAddressProblem,
  findUrlProblem,
  parseUrl,
  type Target,
  toTarget,
} from "../../core/config/allowed-targets.ts";
import { deferPackage } from "../../core/defer-package.ts";
import { required } from "../../core/required.ts";
import { ResponseBody } from "./response-body.ts";

const undici = deferPackage<typeof import("undici")>("undici");

/** All times in milliseconds. */
export interface FetchLimits {
  /** DNS, TCP and TLS together. */
  connectMs: number;
  /** From the first byte of the request to the end of the response headers. */
  headersMs: number;
  /** Between two chunks of the body; the pauses of a slow reader do not count. */
  bodyIdleMs: number;
  maxResponseBytes: number;
  /** The same for an event stream, which is not buffered; undefined: `maxResponseBytes`. */
  maxStreamBytes?: number;
}

/** Options of one call, in addition to those of `fetch`. */
export interface FetchOptions {
  /** Replaces `headersMs` and `bodyIdleMs`. */
  silenceMs?: number | undefined;
  /** The connection is open and the request is being sent. */
  onSent?: (() => void) | undefined;
}

export type FetchPhase = "connect" | "first_byte" | "idle";

/** The guard refuses the target. The message gives the reason, never the address that a name resolved to. */
export class BlockedTarget extends Error {
  override readonly name = "BlockedTarget";

  constructor(reason: string) {
    super(`The address ${reason}`);
  }
}

/** The target was too slow in one phase. */
export class TargetTimeout extends Error {
  override readonly name = "TargetTimeout";
  readonly phase: FetchPhase;

  constructor(phase: FetchPhase) {
    super(`The target did not answer in time (${phase})`);
    this.phase = phase;
  }
}

/**
 * The call broke. `code`: RESPONSE_TOO_LARGE, HEADERS_TOO_LARGE, INVALID_RESPONSE, CANCELLED, or that of Node or undici, such as
 * ECONNREFUSED, ENOTFOUND, CERT_HAS_EXPIRED, UND_ERR_SOCKET. Their messages are left out: they contain the address.
 */
export class TargetFailure extends Error {
  override readonly name = "TargetFailure";
  readonly code: string;

  constructor(code: string) {
    super(`The call to the target failed (${code})`);
    this.code = code;
  }
}

const MAX_HEADER_BYTES = 16 * 1024;
/** A pooled connection keeps its checked address only for a short time. */
const MAX_KEEP_ALIVE_MS = 60_000;
/** Set by this module: a caller's `host` would also choose the TLS server name. */
const OWN_HEADERS = [
  "host",
  "content-length",
  "connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "expect",
];
const BODILESS_STATUSES = [204, 205, 304];
/** `Response` accepts no higher status. */
const MAX_STATUS = 599;

/** A POST of a text. */
export interface PostedText extends FetchOptions {
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
}

/** A response without the web's classes. */
export interface PlainResponse {
  status: number;
  /** Names in lower case. */
  headers: NodeJS.Dict<string | string[]>;
  /** null: the response has none. */
  body: AsyncIterable<Uint8Array> | null;
}

export type PostText = (url: string, request: PostedText) => Promise<PlainResponse>;

export interface GuardedFetch {
  fetch: typeof fetch;
  /** As `fetch`, without Request, Response and web streams, which take a third of the CPU time of a short call. */
  postText: PostText;
  close(): Promise<void>;
}

/**
 * A `fetch` for addresses from users. It checks the address it connects to, returns redirects without following them, and passes
 * encoded bodies on without decompression. The caller must read or cancel every body: an unread one keeps its connection.
 *
 * @throws BlockedTarget, TargetTimeout, TargetFailure (also while reading the body), or the signal's reason.
 * `close` ends every connection at once.
 */
export function createGuardedFetch(guard: EgressGuard, limits: FetchLimits): GuardedFetch {
  // Two pools: a connection to the service itself, opened for an allowed path, must not serve another path later.
  const outside = new LazyAgent(() => guardedAgent(guard, limits, false));
  const ownPool = new LazyAgent(() => guardedAgent(guard, limits, true));

  async function safeFetch(
    input: string | URL | Request,
    init?: RequestInit & FetchOptions,
  ): Promise<Response> {
    const url = checkTarget(guard, input instanceof Request ? input.url : String(input));
    const signal = init?.signal ?? (input instanceof Request ? input.signal : null);
    const plain = findPlainRequest(input, init);
    const options = plain
      ? toDispatch(url, plain)
      : toDispatch(url, await readRequest(new Request(input, { ...init, signal: null })));
    return toResponse(await dispatch(url, options, signal, init));
  }

  async function postText(text: string, { headers, body, signal, ...options }: PostedText) {
    const url = checkTarget(guard, text);
    return dispatch(url, toDispatch(url, { method: "POST", headers, body }), signal, options);
  }

  function dispatch(
    url: URL,
    options: Dispatcher.DispatchOptions,
    signal: AbortSignal | null,
    { silenceMs, onSent }: FetchOptions = {},
  ): Promise<HandledResponse> {
    signal?.throwIfAborted();
    const own = silenceMs === undefined ? limits : { ...limits, headersMs: silenceMs, bodyIdleMs: silenceMs };
    const agent = (toTarget(guard, url).mayBeOwn ? ownPool : outside).open();
    const exchange = new FetchHandler(own, signal, onSent);
    agent.dispatch(options, exchange);
    return exchange.response;
  }

  const close = async () => void (await Promise.all([outside.destroy(), ownPool.destroy()]));
  return { fetch: safeFetch, postText, close };
}

/** A pool that exists from its first use on. Once destroyed, it refuses calls. */
class LazyAgent {
  readonly #create: () => Agent;
  #agent: Agent | null = null;
  #isDestroyed = false;

  constructor(create: () => Agent) {
    this.#create = create;
  }

  open(): Agent {
    if (this.#agent === null) {
      this.#agent = this.#create();
      if (this.#isDestroyed) void this.#agent.destroy();
    }
    return this.#agent;
  }

  async destroy(): Promise<void> {
    this.#isDestroyed = true;
    await this.#agent?.destroy();
  }
}

function checkTarget(guard: EgressGuard, text: string): URL {
  const refusal = findUrlProblem(guard, text);
  if (refusal !== null) throw new BlockedTarget(refusal);
  return required(parseUrl(text), "a URL without a problem");
}

interface SentRequest {
  method: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  body: string | Uint8Array | null;
}

/**
 * The request of a caller that passes names, values and a text. `new Request` and its headers take a tenth of the CPU time of a
 * call. null: only `Request` can read it.
 */
function findPlainRequest(input: string | URL | Request, init: RequestInit | undefined): SentRequest | null {
  const { method = "GET", headers = {}, body = null } = init ?? {};
  if (input instanceof Request || Object.getPrototypeOf(headers) !== Object.prototype) return null;
  if (body !== null && typeof body !== "string") return null;
  if (method !== (body === null ? "GET" : "POST")) return null;
  const sent: Record<string, string> = body === null ? {} : { "content-type": "text/plain;charset=UTF-8" };
  for (const [name, value] of Object.entries(headers as Record<string, string>))
    sent[name.toLowerCase()] = value;
  return { method, headers: sent, body };
}

/** Reads the whole body, because some targets do not accept chunked encoding. */
const readRequest = async (request: Request): Promise<SentRequest> => ({
  method: request.method,
  headers: Object.fromEntries(request.headers),
  body: request.body === null ? null : new Uint8Array(await request.arrayBuffer()),
});

function toDispatch(url: URL, { method, headers, body }: SentRequest): Dispatcher.DispatchOptions {
  for (const name of OWN_HEADERS) delete headers[name];
  headers["accept-encoding"] = "identity";
  return { origin: url.origin, path: url.pathname + url.search, method, headers, body };
}

function guardedAgent(guard: EgressGuard, limits: FetchLimits, mayBeOwn: boolean): Agent {
  const { Agent: UndiciAgent } = undici();
  return new UndiciAgent({
    connect: guardedConnector(guard, limits.connectMs, mayBeOwn),
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
    // Undici's timers have a resolution of half a second; FetchHandler measures the time.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function guardedConnector(
  guard: EgressGuard,
  connectMs: number,
  mayBeOwn: boolean,
): buildConnector.connector {
  // One connector for all: each has its own cache of TLS sessions. The cache is off, so that no connection resumes the session of another.
  const connect = undici().buildConnector({
    timeout: 0,
    allowH2: false,
    rejectUnauthorized: true,
    maxCachedSessions: 0,
  });
  return (options, callback) => {
    const origin = new URL(`${options.protocol}//${options.host}`);
    const target = { ...toTarget(guard, origin), mayBeOwn };
    withinConnectTime(connectMs, (signal) => connectTo(guard, target, options, connect, signal)).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/** The signal closes the socket; the race also ends a DNS look-up, which takes no signal. */
async function withinConnectTime<T>(
  connectMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const aborter = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new TargetTimeout("connect"));
    aborter.abort();
  }, connectMs);
  return Promise.race([work(aborter.signal), late]).finally(() => clearTimeout(timer));
}

async function connectTo(
  guard: EgressGuard,
  target: Target,
  options: buildConnector.Options,
  connect: buildConnector.connector,
  signal: AbortSignal,
): Promise<Socket> {
  const address = await findAddress(guard, target);
  signal.throwIfAborted();
  // Connecting to the address prevents a second look-up by a rebinding DNS. TLS and Host still use the name.
  const named = { ...options, hostname: address, servername: isIP(target.host) ? "" : target.host };
  const socket = await openSocket(connect, named, signal);
  const refusal = findAddressProblem(guard, target, socket.remoteAddress ?? "");
  if (refusal === null) return socket;
  socket.destroy();
  throw new BlockedTarget(refusal);
}

/** The connector's own option `signal` would leave nine listeners on the socket. */
async function openSocket(
  connect: buildConnector.connector,
  options: buildConnector.Options,
  signal: AbortSignal,
): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  // Undici returns the socket, which its types omit.
  const opening = connect(options, (error, socket) =>
    error ? reject(error) : resolve(socket),
  ) as unknown as Socket;
  const onAbort = () => opening.destroy(signal.reason);
  signal.addEventListener("abort", onAbort);
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

async function findAddress(guard: EgressGuard, target: Target): Promise<string> {
  const addresses = isIP(target.host) ? [target.host] : await (guard.resolve ?? systemResolve)(target.host);
  for (const address of addresses) {
    const refusal = findAddressProblem(guard, target, address);
    if (refusal !== null) throw new BlockedTarget(refusal);
  }
  const address = isIP(target.host) ? target.host : addresses.find((address) => isIPv4(address));
  if (address === undefined) throw new TargetFailure("ENOTFOUND");
  return address;
}

async function systemResolve(host: string): Promise<string[]> {
  const answers = await lookup(host, { all: true, family: 4 });
  return answers.map(({ address }) => address);
}

type HandledResponse = PlainResponse & { body: ResponseBody | null };

/** One request and its response, with the timers of both. */
class FetchHandler implements Dispatcher.DispatchHandler {
  readonly #limits: FetchLimits;
  readonly #signal: AbortSignal | null;
  readonly #onSent: (() => void) | undefined;
  readonly #reply = Promise.withResolvers<HandledResponse>();
  /** null after a status without a body: nobody reads the bytes that a target sends nevertheless. */
  #body: ResponseBody | null = new ResponseBody({
    onDrained: () => this.#resume(),
    onCanceled: () => this.#fail(new TargetFailure("CANCELLED")),
  });
  #controller: Dispatcher.DispatchController | null = null;
  #timer: NodeJS.Timeout | undefined;
  #timerMs = 0;
  #phase: FetchPhase = "connect";
  #receivedBytes = 0;
  #maxBytes: number;
  #failure: Error | null = null;

  constructor(limits: FetchLimits, signal: AbortSignal | null, onSent: (() => void) | undefined) {
    this.#limits = limits;
    this.#signal = signal;
    this.#onSent = onSent;
    this.#maxBytes = limits.maxResponseBytes;
    signal?.addEventListener("abort", this.#onAbort);
  }

  get response(): Promise<HandledResponse> {
    return this.#reply.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#failure) controller.abort(this.#failure);
    else {
      this.#onSent?.();
      this.#await("first_byte", this.#limits.headersMs);
    }
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: NodeJS.Dict<string | string[]>,
  ): void {
    // The raw headers are a second copy and hold the first packet in memory.
    controller.rawHeaders = null;
    if (status < 200) return;
    if (status > MAX_STATUS) throw new TargetFailure("INVALID_RESPONSE");
    this.#await("idle", this.#limits.bodyIdleMs);
    if (isEventStream(headers)) this.#maxBytes = this.#limits.maxStreamBytes ?? this.#maxBytes;
    if (BODILESS_STATUSES.includes(status)) this.#body = null;
    this.#reply.resolve({ status, headers, body: this.#body });
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Undici passes an empty chunk when it resumes with nothing read; pausing then would never end.
    if (chunk.length === 0) return;
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > this.#maxBytes) throw new TargetFailure("RESPONSE_TOO_LARGE");
    this.#await("idle", this.#limits.bodyIdleMs);
    this.#body?.push(chunk);
    if (this.#body?.isFull) controller.pause();
  }

  onResponseEnd(): void {
    this.#settle();
    this.#body?.end();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(toFailure(error));
  }

  /** The target's time begins anew when the reader has caught up. */
  #resume(): void {
    this.#await("idle", this.#limits.bodyIdleMs);
    if (this.#controller?.paused) this.#controller.resume();
  }

  #await(phase: FetchPhase, limitMs: number): void {
    this.#phase = phase;
    if (this.#timer && this.#timerMs === limitMs) return void this.#timer.refresh();
    clearTimeout(this.#timer);
    this.#timerMs = limitMs;
    this.#timer = setTimeout(this.#onSilence, limitMs);
  }

  /** While the reader is behind, the silence may be its own. */
  #onSilence = () => {
    this.#timer = undefined;
    if (!this.#body?.hasUnread) this.#fail(new TargetTimeout(this.#phase));
  };

  #onAbort = () => this.#fail(this.#signal?.reason);

  /** Rejects everything that the caller waits for, with the first failure. */
  #fail(failure: Error): void {
    this.#settle();
    this.#failure ??= failure;
    this.#reply.reject(this.#failure);
    this.#body?.fail(this.#failure, { dropsUnread: this.#signal?.aborted ?? false });
    this.#controller?.abort(this.#failure);
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}

/** Without the reason phrase: Response accepts only Latin letters in it. */
const toResponse = ({ status, headers, body }: HandledResponse): Response =>
  new Response(body && toReadableStream(body), { status, headers: toHeaders(headers) });

function toReadableStream(body: ResponseBody): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(stream) {
      const { done, value } = await body.next();
      if (done) stream.close();
      else stream.enqueue(value);
    },
    cancel: async () => void (await body.return()),
  });
}

const isEventStream = (headers: NodeJS.Dict<string | string[]>): boolean =>
  /^text\/event-stream\b/i.test(String(headers["content-type"] ?? ""));

function toHeaders(raw: NodeJS.Dict<string | string[]>): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(raw)) {
    for (const value of [values].flat()) headers.append(name, value);
  }
  return headers;
}

function toFailure(error: Error & { code?: unknown }): Error {
  const isOurs =
    error instanceof BlockedTarget || error instanceof TargetTimeout || error instanceof TargetFailure;
  if (isOurs) return error;
  if (error.code === "UND_ERR_HEADERS_OVERFLOW") return new TargetFailure("HEADERS_TOO_LARGE");
  return new TargetFailure(typeof error.code === "string" ? error.code : "INVALID_RESPONSE");
}
