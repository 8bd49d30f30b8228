import type { Readable } from "node:stream";
import type { Data, Endpoint, Input } from "@stoa/contract";
import type { z } from "zod";
import type { Caller, Context, Member, RequestSource, SessionCaller } from "../../core/context.ts";
import type { ItemSource } from "../../core/read-each.ts";
import { required } from "../../core/required.ts";
import type { Page } from "../db/paging.ts";
import type { RawPage } from "./envelope.ts";
import type { UploadedFile } from "./multipart.ts";
import type { PreferHeader } from "./prefer.ts";
import type { RawBody } from "./raw-body.ts";

/** Rendered JSON, such as a product's card. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Rendered JSON in parts, of which some may be cached. */
export class RawData {
  readonly parts: Buffer[];
  constructor(parts: Buffer[]) {
    this.parts = parts;
  }
}

/** Cookies have one form: `__Host-`, HttpOnly, Secure, SameSite=Lax, Path=/. Age 0 deletes the cookie. */
export interface Cookie {
  name: `__Host-${string}`;
  value: string;
  maxAgeSeconds: number;
}

interface ResponseOptions {
  status?: 200 | 201 | 202;
  etag?: string;
  cookies?: Cookie[];
  /** Members of the envelope beside `data`: sign-in's `sessionToken`. */
  beside?: Record<string, unknown>;
}

/** Data with another status, an ETag that is not its digest, or cookies. */
export class DataResponse<D> {
  readonly data: D;
  readonly status: 200 | 201 | 202 | undefined;
  readonly etag: string | undefined;
  readonly cookies: Cookie[];
  readonly beside: Record<string, unknown>;
  constructor(data: D, { status, etag, cookies = [], beside = {} }: ResponseOptions) {
    this.data = data;
    this.status = status;
    this.etag = etag;
    this.cookies = cookies;
    this.beside = beside;
  }
}

/** 202: the work continues without its caller. */
export class AcceptedResponse<D = unknown> {
  readonly data: D;
  /** Whether the caller sent `Prefer: respond-async`. */
  readonly asPreferred: boolean;
  constructor(data: D, asPreferred: boolean) {
    this.data = data;
    this.asPreferred = asPreferred;
  }
}

/** A file, sent while it is read. */
export class FileResponse {
  readonly name: string;
  readonly type: string;
  readonly bytes: Readable;
  constructor(file: Pick<FileResponse, "name" | "type" | "bytes">) {
    this.name = file.name;
    this.type = file.type;
    this.bytes = file.bytes;
  }
}

/** `data` has no line break. */
export interface StreamedEvent {
  id?: string;
  type?: string;
  data?: string;
}

/** A stream of events until the client disconnects. */
export class EventStreamResponse {
  /** The next event is requested when the previous one was sent. The signal aborts when the stream ends. */
  readonly events: (signal: AbortSignal) => ItemSource<StreamedEvent>;
  /** Ends the stream at once. */
  readonly endSignal: AbortSignal;
  /** Called when the stream has ended. */
  readonly onEnd: () => void;
  /** The name by which `streams.replay` of the route finds it for a repeat of the Idempotency-Key. */
  readonly name: string | null;
  constructor(stream: Pick<EventStreamResponse, "events" | "endSignal" | "onEnd"> & { name?: string }) {
    this.events = stream.events;
    this.endSignal = stream.endSignal;
    this.onEnd = stream.onEnd;
    this.name = stream.name ?? null;
  }
}

export interface RequestInfo {
  /** The file of an upload. */
  file: UploadedFile | null;
  ifMatch: string | null;
  /** Last-Event-ID of a client that reconnects to a stream. */
  lastEventId: string | null;
  /** Whether Accept asks for a stream of events. */
  acceptsEvents: boolean;
  prefer: PreferHeader;
  source: RequestSource;
  cookies: Record<string, string | undefined>;
  /** The token of the Authorization header; at a public endpoint nothing has checked it. */
  bearer: string | null;
  /** Whether a page in a browser sent it: pages cannot remove the headers that show this. */
  isFromBrowser: boolean;
  /** HEAD returns no content, so it must not count as a view. */
  isHead: boolean;
  /** Whether a browser prefetches, which must not count as a view either. */
  isPrefetch: boolean;
  /** Whether another site led the browser here with the session cookie, possibly without the user's intent. */
  isCrossSiteNavigation: boolean;
  rawBody: RawBody;
  /**
   * Aborts when the client disconnects before its answer. null with an Idempotency-Key: the work continues, so that a
   * repeat gets the answer.
   */
  disconnectSignal(): AbortSignal | null;
}

/** A public endpoint identifies no caller. */
type CallerOf<E extends Endpoint> = E["access"] extends { who: "session" | "admin" }
  ? SessionCaller
  : E["access"] extends { who: "member" }
    ? Member
    : E["access"] extends { who: "public" }
      ? null
      : Caller;

type Result<E extends Endpoint> = ResultByKind<E>[E["response"]["kind"]];

interface ResultByKind<E extends Endpoint> {
  one: Data<E> | DataResponse<Data<E> | RawData> | StreamOf<E["response"]> | BackgroundOf<E["response"]>;
  list: Page<Data<E> | RawJson> | RawPage;
  file: FileResponse;
  events: EventStreamResponse;
  foreign: Data<E> | StreamOf<E["response"]>;
}

type StreamOf<R> = R extends { canStream: true } ? EventStreamResponse : never;
type BackgroundOf<R> = R extends { accepted: { kind: "background"; data: infer D extends z.ZodType } }
  ? AcceptedResponse<z.input<D>>
  : never;

export type Handler<E extends Endpoint> = (
  ctx: Context,
  caller: CallerOf<E>,
  input: Input<E>,
  info: RequestInfo,
) => Promise<Result<E>>;

/** Returns the present state of what the first request under an Idempotency-Key wrote; null: nothing, so the handler runs again. */
export type Resume<E extends Endpoint> = (
  ctx: Context,
  caller: CallerOf<E>,
  resource: string,
  input: Input<E>,
  info: RequestInfo,
) => Promise<Result<E> | null>;

export interface Route {
  endpoint: Endpoint;
  /** For an upload: throws before the body is read if this caller may not send it. */
  authorizeUpload?(ctx: Context, caller: Caller | null, params: never): Promise<unknown>;
  handle(ctx: Context, caller: Caller | null, input: never, info: RequestInfo): Promise<unknown>;
  /** Why the handler may run again when the process of the first request died. */
  repeatableBecause?: string;
  /** For a handler that binds the Idempotency-Key to what it writes. */
  resume?(
    ctx: Context,
    caller: Caller | null,
    resource: string,
    input: never,
    info: RequestInfo,
  ): Promise<unknown>;
  /** Whether a request of this caller can change something that is cached, so that its response waits for the caches. Default: it can. */
  changesCache?(caller: Caller | null): boolean;
  /** For an endpoint that may return a stream. */
  streams?: {
    /** The stream for a repeat of an Idempotency-Key, by the name of the first stream. */
    replay(ctx: Context, caller: Caller | null, name: string): Promise<EventStreamResponse>;
    /** The name of the stream of a request that still runs, by the resource that it is bound to; null: it returns none. */
    findRunning(ctx: Context, caller: Caller | null, resource: string, input: never): Promise<string | null>;
  };
}

/** Connects an endpoint of the contract with its handler. */
export const route = <E extends Endpoint>(endpoint: E, handle: Handler<E>): Route => ({
  endpoint,
  handle: handle as Route["handle"],
});

/** For a handler that binds the Idempotency-Key: `resume` answers a repeat when the process of the first request died. */
export const resumableRoute = <E extends Endpoint>(
  endpoint: E,
  handle: Handler<E>,
  resume: Resume<E>,
): Route => ({
  ...route(endpoint, handle),
  resume: resume as Route["resume"] & {},
});

/** For a handler that may run twice without harm. */
export const repeatableRoute = (repeatableBecause: string, route: Route): Route => ({
  ...route,
  repeatableBecause,
});

/** For a handler that changes no cached data: it saves a round trip to the database. */
export const withoutCacheChange = (route: Route): Route => withCacheChange(() => false, route);

/** For a handler whose requests change cached data only for some callers. */
export const withCacheChange = (changesCache: (caller: Caller | null) => boolean, route: Route): Route => ({
  ...route,
  changesCache,
});

interface StreamReplay<E extends Endpoint> {
  replayStream(ctx: Context, caller: CallerOf<E>, name: string): Promise<EventStreamResponse>;
  findRunningStream(
    ctx: Context,
    caller: CallerOf<E>,
    resource: string,
    input: Input<E>,
  ): Promise<string | null>;
  resume: Resume<E>;
}

/** For a handler that may return a stream: a repeat of an Idempotency-Key gets the events of the first request, also while it runs. */
export const streamRoute = <E extends Endpoint>(
  endpoint: E,
  handle: Handler<E>,
  { replayStream, findRunningStream, resume }: StreamReplay<E>,
): Route => ({
  ...resumableRoute(endpoint, handle, resume),
  streams: { replay: replayStream, findRunning: findRunningStream } as Route["streams"] & {},
});

/** For an upload: `admit` runs before the body is read, so that refused files never reach the disk. */
export const uploadRoute = <E extends Endpoint>(
  endpoint: E,
  admit: (ctx: Context, caller: CallerOf<E>, params: Input<E>["params"]) => Promise<unknown>,
  handle: (
    ctx: Context,
    caller: CallerOf<E>,
    input: Input<E> & { file: UploadedFile },
    info: RequestInfo,
  ) => Promise<Result<E>>,
): Route => ({
  ...route(endpoint, (ctx, caller, input, info) =>
    handle(ctx, caller, { ...input, file: required(info.file, "the file of an upload") }, info),
  ),
  authorizeUpload: admit as Route["authorizeUpload"] & {},
});
