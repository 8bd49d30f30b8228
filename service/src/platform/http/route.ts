import type { Readable } from "node:stream";
import type { Data, Endpoint, Input } from "@stoa/contract";
import type { z } from "zod";
import type { Caller, Context, Member, RequestSource, SessionCaller } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import type { Page } from "../db/paging.ts";
import type { RawPage } from "./envelope.ts";
import type { UploadedFile } from "./multipart.ts";
import type { PreferHeader } from "./prefer.ts";
import type { RawBody } from "./raw-body.ts";

/** JSON that is rendered already, such as a product's card. */
export class RawJson {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A cookie in our one shape: `__Host-`, HttpOnly, Secure, SameSite=Lax, Path=/. Age 0 takes it away. */
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

/** An answer that says more than its data: another status, an ETag that is not the data's digest, a cookie. */
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

/** 202: what was asked for goes on without its caller. */
export class AcceptedResponse<D = unknown> {
  readonly data: D;
  /** Whether the caller had asked for that, by `Prefer: respond-async`. */
  readonly asPreferred: boolean;
  constructor(data: D, asPreferred: boolean) {
    this.data = data;
    this.asPreferred = asPreferred;
  }
}

/** An answer that is a file: it goes out as it is read. */
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

/** A block of a stream of server-sent events; its data is one line. */
export interface StreamedEvent {
  id?: string;
  type?: string;
  data?: string;
}

/** An answer that goes on: events as they come, for as long as somebody reads. */
export class EventStreamResponse {
  /** Asked for the next one when what went before is on its way. The signal aborts when the stream is over, whoever ended it. */
  readonly events: (signal: AbortSignal) => AsyncIterable<StreamedEvent>;
  /** Ends it at once, whatever its reader does. */
  readonly endSignal: AbortSignal;
  /** Called when it is over. */
  readonly onEnd: () => void;
  /** By which the route's `again` finds it for a repeat of the Idempotency-Key; null: it has none. */
  readonly name: string | null;
  constructor(stream: Pick<EventStreamResponse, "events" | "endSignal" | "onEnd"> & { name?: string }) {
    this.events = stream.events;
    this.endSignal = stream.endSignal;
    this.onEnd = stream.onEnd;
    this.name = stream.name ?? null;
  }
}

export interface RequestInfo {
  /** What came in, where the endpoint takes an upload. */
  file: UploadedFile | null;
  ifMatch: string | null;
  /** Of whoever comes back to a stream: the last event that they heard. */
  lastEventId: string | null;
  /** Whether the answer may be a stream of events, by Accept. */
  acceptsEvents: boolean;
  prefer: PreferHeader;
  source: RequestSource;
  cookies: Record<string, string | undefined>;
  /** What the Authorization header says, which nobody has judged at a public endpoint; null: there is none. */
  bearer: string | null;
  /** Whether a page in a browser asks: it cannot leave out the headers that say so. */
  isFromBrowser: boolean;
  /** Whether only headers are asked for (HEAD): nothing is shown, so nothing counts as seen. */
  isHead: boolean;
  /** Whether a browser fetches in advance, in case that somebody will look. */
  isPrefetch: boolean;
  /** Whether another site led a browser here, which brought the session's cookie along: its person may not have meant to come. */
  isCrossSiteNavigation: boolean;
  rawBody: RawBody;
  /**
   * Aborts when the client hangs up before it has its answer. null with an Idempotency-Key: then the work goes on
   * to its end, so that the retry gets the answer.
   */
  disconnectSignal(): AbortSignal | null;
}

/** At a public endpoint nobody was asked: there is no caller. */
type CallerOf<E extends Endpoint> = E["access"] extends { who: "session" | "admin" }
  ? SessionCaller
  : E["access"] extends { who: "member" }
    ? Member
    : E["access"] extends { who: "public" }
      ? null
      : Caller;

type Result<E extends Endpoint> = ResultByKind<E>[E["response"]["kind"]];

interface ResultByKind<E extends Endpoint> {
  one: Data<E> | DataResponse<Data<E>> | StreamOf<E["response"]> | BackgroundOf<E["response"]>;
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

/** Answers how that stands which an earlier request under the same Idempotency-Key wrote; null: nothing came of it, act anew. */
export type Resume<E extends Endpoint> = (
  ctx: Context,
  caller: CallerOf<E>,
  resource: string,
  input: Input<E>,
  info: RequestInfo,
) => Promise<Result<E> | null>;

export interface Route {
  endpoint: Endpoint;
  /** Of an upload: throws before a byte of it is read when this caller may not send it. */
  authorizeUpload?(ctx: Context, caller: Caller | null, params: never): Promise<unknown>;
  handle(ctx: Context, caller: Caller | null, input: never, info: RequestInfo): Promise<unknown>;
  /** Why a repeat of its Idempotency-Key may act again after the first request's process died. */
  repeatableBecause?: string;
  /** Of a handler that binds the Idempotency-Key to what it writes. */
  resume?(
    ctx: Context,
    caller: Caller | null,
    resource: string,
    input: never,
    info: RequestInfo,
  ): Promise<unknown>;
  /** What it changes is nothing that a process remembers, so that its answer waits for no process to forget. */
  changesNoCache?: true;
  /** Of an endpoint that may answer with a stream. */
  streams?: {
    /** The stream that a repeat of an Idempotency-Key hears, by the name of the first one. */
    replay(ctx: Context, caller: Caller | null, name: string): Promise<EventStreamResponse>;
    /** The name of the stream that a request which still runs will answer, by the resource it is bound to; null: it answers no stream. */
    findRunning(ctx: Context, caller: Caller | null, resource: string, input: never): Promise<string | null>;
  };
}

/** Ties an endpoint of the contract to the verb that answers it. */
export const route = <E extends Endpoint>(endpoint: E, handle: Handler<E>): Route => ({
  endpoint,
  handle: handle as Route["handle"],
});

/** Of a handler that binds the Idempotency-Key: how a repeat is answered after the first request's process died. */
export const resumableRoute = <E extends Endpoint>(
  endpoint: E,
  handle: Handler<E>,
  resume: Resume<E>,
): Route => ({
  ...route(endpoint, handle),
  resume: resume as Route["resume"] & {},
});

/** Of a handler that binds no Idempotency-Key, because acting again does no harm. */
export const repeatableRoute = (repeatableBecause: string, route: Route): Route => ({
  ...route,
  repeatableBecause,
});

/** Of what changes neither keys, nor people, nor what lists show (`Memory` in db/notices.ts): it is answered a round trip earlier. */
export const withoutCacheChange = (route: Route): Route => ({ ...route, changesNoCache: true });

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

/** Of what may answer with a stream: a repeat of an Idempotency-Key is sent the events of the first one, also while that one runs. */
export const streamRoute = <E extends Endpoint>(
  endpoint: E,
  handle: Handler<E>,
  { replayStream, findRunningStream, resume }: StreamReplay<E>,
): Route => ({
  ...resumableRoute(endpoint, handle, resume),
  streams: { replay: replayStream, findRunning: findRunningStream } as Route["streams"] & {},
});

/** Of an upload: `admit` is asked before a byte of the body is read, so that nobody fills the disk in vain. */
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
