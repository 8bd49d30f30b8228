import { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import type { Access } from "./permissions.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
type Shape = z.ZodObject;
type NoFields = z.ZodObject<Record<never, never>>;

/** The body of a request. */
export type EndpointRequest = NoRequest | JsonRequest | UploadRequest | RawRequest;

export interface NoRequest {
  kind: "none";
}

export interface JsonRequest<B extends Shape = Shape> {
  kind: "json";
  body: B;
  /** A valid body, for the reference. */
  example: z.input<B>;
}

/** multipart/form-data: one part with a file, called `file`, and text fields. */
export interface UploadRequest<B extends Shape = Shape> {
  kind: "upload";
  maxBytes: number;
  fields: B;
  example: z.input<B>;
}

/** The bytes of a file of one of these media types. */
export interface RawRequest {
  kind: "raw";
  types: readonly string[];
  maxBytes: number;
}

/** The successful response. */
export type EndpointResponse = OneResponse | ListResponse | FileResponse | EventsResponse | ForeignResponse;

/** One object in `data` of the envelope. */
export interface OneResponse<
  D extends z.ZodType = z.ZodType,
  A extends Accepted | null = Accepted | null,
  S extends boolean = boolean,
> {
  kind: "one";
  data: D;
  status: 200 | 201;
  accepted: A;
  /** Returns server-sent events on request, by `stream: true` or Accept. */
  canStream: S;
}

/** Why an endpoint also answers 202. */
export type Accepted =
  /** The result is not known yet; `data` has the same schema. `Prefer: wait=N` waits for the result. */
  | { kind: "pending"; supportsPreferWait?: true }
  /** The work continues in the background, after `Prefer: respond-async`; `data` has this schema. */
  | { kind: "background"; data: z.ZodType };

/** An array of items in `data`, with page, limit and total in `meta`. */
export interface ListResponse<D extends z.ZodType = z.ZodType> {
  kind: "list";
  item: D;
}

/** The bytes of a file of one of these media types. */
export interface FileResponse {
  kind: "file";
  types: readonly string[];
}

/** Server-sent events, each with `data`. */
export interface EventsResponse<D extends z.ZodType = z.ZodType> {
  kind: "events";
  data: D;
}

/** Another API's format, also for errors: `data` is the whole body. */
export interface ForeignResponse<D extends z.ZodType = z.ZodType, S extends boolean = boolean> {
  kind: "foreign";
  api: "openai";
  data: D;
  canStream: S;
}

/** One endpoint as data, the source of validation, handler types, OpenAPI and the reference. */
export interface Endpoint<
  A extends Access = Access,
  P extends Shape = Shape,
  Q extends Shape = Shape,
  Req extends EndpointRequest = EndpointRequest,
  Res extends EndpointResponse = EndpointResponse,
> {
  /** The operationId, and the name of the method in clients: `products.list`. */
  name: string;
  method: Method;
  /** `/v1` is the API; `/api/auth` is sign-in, which has no Idempotency-Key. */
  base: "/v1" | "/api/auth";
  /** Below the base, parameters as `:name`. */
  path: string;
  tag: string;
  summary: string;
  description?: string;
  access: A;
  params: P;
  query: Q;
  request: Req;
  response: Res;
  /** A session must be from a sign-in of the last 15 minutes, since the result outlives it. Keys and tokens pass. */
  requiresFreshSignIn: boolean;
  /** The answer contains a secret once. It is not stored for the Idempotency-Key: a repeat is 409 CONFLICT. */
  showsSecret: boolean;
  /** Whether its path contains a secret, which logs must not show. */
  hasSecretPath: boolean;
  supportsIfMatch: boolean;
  /** Whether a request counts in its caller's quotas. */
  countsInQuota: boolean;
  /** Further errors follow from its shape: errorsOf(). */
  errors: readonly ErrorCode[];
}

type EndpointInput<
  A extends Access,
  P extends Shape,
  Q extends Shape,
  Req extends EndpointRequest,
  Res extends EndpointResponse,
> = Partial<Endpoint<A, P, Q, Req, Res>> &
  Pick<Endpoint<A, P, Q, Req, Res>, "name" | "method" | "path" | "summary" | "access" | "response">;

const nothing = z.strictObject({});

/** Without `request` the endpoint has no body. */
export function endpoint<
  const A extends Access,
  const Res extends EndpointResponse,
  P extends Shape = NoFields,
  Q extends Shape = NoFields,
  const Req extends EndpointRequest = NoRequest,
>(draft: EndpointInput<A, P, Q, Req, Res>): Endpoint<A, P, Q, Req, Res> {
  const [room = draft.name] = draft.name.split(".");
  return {
    tag: room,
    params: nothing as unknown as P,
    query: nothing as unknown as Q,
    request: { kind: "none" } as Req,
    base: "/v1",
    requiresFreshSignIn: false,
    showsSecret: false,
    hasSecretPath: false,
    supportsIfMatch: false,
    countsInQuota: true,
    errors: [],
    ...draft,
  };
}

export const json = <B extends Shape>(body: B, example: z.input<B>): JsonRequest<B> => ({
  kind: "json",
  body,
  example,
});

interface OneOptions<A, S> {
  status?: 200 | 201;
  accepted?: A;
  canStream?: S;
}

/** 200 with one object in `data`. */
export const one = <
  D extends z.ZodType,
  const A extends Accepted | null = null,
  const S extends boolean = false,
>(
  data: D,
  { status = 200, accepted = null as A, canStream = false as S }: OneOptions<A, S> = {},
): OneResponse<D, A, S> => ({ kind: "one", data, status, accepted, canStream });

/** 201 with the new object in `data`. */
export const created = <D extends z.ZodType, const A extends Accepted | null = null>(
  data: D,
  accepted: A = null as A,
): OneResponse<D, A, false> => one(data, { status: 201, accepted });

/** 200 with a page of these items. */
export const listOf = <D extends z.ZodType>(item: D): ListResponse<D> => ({ kind: "list", item });

type BodyOf<R extends EndpointRequest> =
  R extends JsonRequest<infer B> ? B : R extends UploadRequest<infer B> ? B : NoFields;
type DataOf<R extends EndpointResponse> = R extends { item: infer D } | { data: infer D } ? D : never;

/** The parsed input of a handler. For an upload, `body` has the text fields. */
export type Input<E extends Endpoint> = {
  params: z.output<E["params"]>;
  query: z.output<E["query"]>;
  body: z.output<BodyOf<E["request"]>>;
};

/** The type of `data`; for a list, of one item. */
export type Data<E extends Endpoint> = z.input<DataOf<E["response"]>>;

/** null: the endpoint has no body. */
export function fieldsOf({ request }: Endpoint): Shape | null {
  if (request.kind === "json") return request.body;
  return request.kind === "upload" ? request.fields : null;
}

/** The status of a complete success. */
export const statusOf = ({ response }: Endpoint): 200 | 201 =>
  response.kind === "one" ? response.status : 200;

/** Every status of a success. */
export const statusesOf = (endpoint: Endpoint): (200 | 201 | 202)[] =>
  endpoint.response.kind === "one" && endpoint.response.accepted
    ? [statusOf(endpoint), 202]
    : [statusOf(endpoint)];

/** Its own errors and those that follow from its shape. */
export function errorsOf(endpoint: Endpoint): ErrorCode[] {
  const codes = new Set<ErrorCode>(["INVALID_REQUEST", "RATE_LIMIT_EXCEEDED", ...endpoint.errors]);
  if (endpoint.access.who !== "public") codes.add("INVALID_API_KEY").add("UNAUTHORIZED");
  if (endpoint.base === "/api/auth") codes.add("UNAUTHORIZED");
  if (endpoint.method !== "GET") codes.add("PAYLOAD_TOO_LARGE").add("UNSUPPORTED_MEDIA_TYPE");
  if (isRepeatable(endpoint))
    codes.add("IDEMPOTENCY_IN_PROGRESS").add("IDEMPOTENCY_KEY_REUSED").add("CONFLICT");
  if (endpoint.supportsIfMatch) codes.add("PRECONDITION_FAILED");
  return [...codes.add("INTERNAL_ERROR").add("SERVICE_UNAVAILABLE")];
}

/** Whether it accepts an Idempotency-Key. */
export const isRepeatable = ({ method, base }: Endpoint) => method === "POST" && base === "/v1";
