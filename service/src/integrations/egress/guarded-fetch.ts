import { lookup } from "node:dns/promises";
import { isIP, isIPv4, type Socket } from "node:net";
import { Agent, buildConnector, type Dispatcher } from "undici";
import {
  type EgressGuard,
  findAddressProblem,
  findUrlProblem,
  parseUrl,
  type Target,
  toTarget,
} from "../../core/config/allowed-targets.ts";
import { required } from "../../core/required.ts";

/** All times in milliseconds. */
export interface FetchLimits {
  /** DNS, TCP and TLS together. */
  connectMs: number;
  /** From the request's first byte until all headers of the response are there. */
  headersMs: number;
  /** Between two chunks of the body; a reader who is slow itself is not counted. */
  bodyIdleMs: number;
  maxResponseBytes: number;
  /** The same of an event stream, which is read as it comes and held nowhere; undefined: `maxResponseBytes`. */
  maxStreamBytes?: number;
}

/** What one call may set for itself, beside what `fetch` knows. */
export interface FetchOptions {
  /** In the place of `headersMs` and `bodyIdleMs`. */
  silenceMs?: number | undefined;
  /** The request is on its way to a target that took the connection. */
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
 * The call broke. `code`: RESPONSE_TOO_LARGE, HEADERS_TOO_LARGE, INVALID_RESPONSE, or that of Node or undici, such as
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
/** A pooled connection keeps the address that was checked when it was made, but not for long. */
const MAX_KEEP_ALIVE_MS = 60_000;
/** Ours to say: a caller's `host` would also choose the TLS server name. */
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

/**
 * A `fetch` for addresses that users give. The address actually dialled is checked, redirects are answered as they are
 * and never followed, and a body that comes encoded all the same is passed on raw with its `content-encoding`: nothing is
 * decompressed here. Read or cancel every body, or abort: an unread one holds its connection.
 *
 * @throws BlockedTarget, TargetTimeout, TargetFailure (reading the body too), or the signal's reason.
 * `close` ends every connection at once.
 */
export function createGuardedFetch(
  guard: EgressGuard,
  limits: FetchLimits,
): { fetch: typeof fetch; close(): Promise<void> } {
  // Two pools: a connection to the service itself, opened for an allowed path, must not serve another path later.
  const outside = guardedAgent(guard, limits, false);
  const ownPool = guardedAgent(guard, limits, true);

  async function safeFetch(
    input: string | URL | Request,
    init?: RequestInit & FetchOptions,
  ): Promise<Response> {
    const url = checkTarget(guard, input instanceof Request ? input.url : String(input));
    const signal = init?.signal ?? (input instanceof Request ? input.signal : null);
    const options = await toDispatch(url, new Request(input, { ...init, signal: null }));
    signal?.throwIfAborted();
    const silenceMs = init?.silenceMs;
    const own = silenceMs === undefined ? limits : { ...limits, headersMs: silenceMs, bodyIdleMs: silenceMs };
    const exchange = new FetchHandler(own, signal, init?.onSent);
    (toTarget(guard, url).mayBeOwn ? ownPool : outside).dispatch(options, exchange);
    return exchange.response;
  }

  const close = async () => void (await Promise.all([outside.destroy(), ownPool.destroy()]));
  return { fetch: safeFetch, close };
}

function checkTarget(guard: EgressGuard, text: string): URL {
  const refusal = findUrlProblem(guard, text);
  if (refusal !== null) throw new BlockedTarget(refusal);
  return required(parseUrl(text), "a URL without a problem");
}

/** The body is read whole: a known length spares the target chunked encoding, which not every one takes. */
async function toDispatch(url: URL, request: Request): Promise<Dispatcher.DispatchOptions> {
  const headers = new Headers(request.headers);
  for (const name of OWN_HEADERS) headers.delete(name);
  headers.set("accept-encoding", "identity");
  return {
    origin: url.origin,
    path: url.pathname + url.search,
    method: request.method,
    headers: Object.fromEntries(headers),
    body: request.body === null ? null : new Uint8Array(await request.arrayBuffer()),
  };
}

function guardedAgent(guard: EgressGuard, limits: FetchLimits, mayBeOwn: boolean): Agent {
  return new Agent({
    connect: guardedConnector(guard, limits.connectMs, mayBeOwn),
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveMaxTimeout: MAX_KEEP_ALIVE_MS,
    // Undici's own timers tick every half second; Exchange keeps the time.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

function guardedConnector(
  guard: EgressGuard,
  connectMs: number,
  mayBeOwn: boolean,
): buildConnector.connector {
  return (options, callback) => {
    const origin = new URL(`${options.protocol}//${options.host}`);
    const target = { ...toTarget(guard, origin), mayBeOwn };
    withinConnectTime(connectMs, (signal) => dial(guard, target, options, signal)).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    );
  };
}

/** The signal ends the work's socket; the race also ends a DNS that hears no signal. */
async function withinConnectTime<T>(
  connectMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const patience = new AbortController();
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new TargetTimeout("connect"));
    patience.abort();
  }, connectMs);
  return Promise.race([work(patience.signal), late]).finally(() => clearTimeout(timer));
}

async function dial(
  guard: EgressGuard,
  target: Target,
  options: buildConnector.Options,
  signal: AbortSignal,
): Promise<Socket> {
  const address = await addressToDial(guard, target);
  signal.throwIfAborted();
  const connect = buildConnector({ signal, timeout: 0, allowH2: false, rejectUnauthorized: true });
  // Dialling the address leaves no second look-up to a rebinding DNS; TLS and Host still speak of the name.
  const named = { ...options, hostname: address, servername: isIP(target.host) ? "" : target.host };
  const socket = await new Promise<Socket>((resolve, reject) => {
    connect(named, (error, socket) => (error ? reject(error) : resolve(socket)));
  });
  const refusal = findAddressProblem(guard, target, socket.remoteAddress ?? "");
  if (refusal === null) return socket;
  socket.destroy();
  throw new BlockedTarget(refusal);
}

async function addressToDial(guard: EgressGuard, target: Target): Promise<string> {
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

/** One request and its response, from the first byte sent to the last byte read, and the clock over both. */
class FetchHandler implements Dispatcher.DispatchHandler {
  readonly #limits: FetchLimits;
  readonly #signal: AbortSignal | null;
  readonly #onSent: (() => void) | undefined;
  readonly #reply = Promise.withResolvers<Response>();
  #controller: Dispatcher.DispatchController | null = null;
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #timer: NodeJS.Timeout | undefined;
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

  get response(): Promise<Response> {
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
    _: Dispatcher.DispatchController,
    status: number,
    headers: NodeJS.Dict<string | string[]>,
  ): void {
    if (status < 200) return;
    this.#await("idle", this.#limits.bodyIdleMs);
    if (isEventStream(headers)) this.#maxBytes = this.#limits.maxStreamBytes ?? this.#maxBytes;
    const body = BODILESS_STATUSES.includes(status) ? null : this.#openBody();
    // Without the reason, which says nothing, and of which a Response refuses all but Latin letters.
    this.#reply.resolve(new Response(body, { status, headers: toHeaders(headers) }));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Undici hands on an empty chunk when it resumes with nothing read: pausing for that would never end.
    if (chunk.length === 0) return;
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > this.#maxBytes) throw new TargetFailure("RESPONSE_TOO_LARGE");
    this.#await("idle", this.#limits.bodyIdleMs);
    this.#body?.enqueue(chunk);
    if (this.#body && (this.#body.desiredSize ?? 0) <= 0) this.#pause(controller);
  }

  onResponseEnd(): void {
    this.#settle();
    this.#body?.close();
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.#fail(toFailure(error));
  }

  #openBody(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>({
      start: (body) => {
        this.#body = body;
      },
      pull: () => this.#resume(),
      cancel: () => this.#fail(new TargetFailure("CANCELLED")),
    });
  }

  /** While the reader is busy the target is not to blame: the clock stands still. */
  #pause(controller: Dispatcher.DispatchController): void {
    clearTimeout(this.#timer);
    controller.pause();
  }

  #resume(): void {
    if (!this.#controller?.paused) return;
    this.#await("idle", this.#limits.bodyIdleMs);
    this.#controller.resume();
  }

  #await(phase: FetchPhase, limitMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(new TargetTimeout(phase)), limitMs);
  }

  #onAbort = () => this.#fail(this.#signal?.reason);

  /** Rejects whatever the caller still waits for; the first failure is the one told. */
  #fail(failure: Error): void {
    this.#settle();
    this.#failure ??= failure;
    this.#reply.reject(this.#failure);
    this.#body?.error(this.#failure);
    this.#controller?.abort(this.#failure);
  }

  #settle(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
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
