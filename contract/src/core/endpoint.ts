import { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import type { Access } from "./permissions.ts";

export type Method = "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
type Shape = z.ZodObject;

/** One endpoint as data: validation, handler types, OpenAPI and the reference are all made from it. */
export interface Endpoint<
  P extends Shape = Shape,
  Q extends Shape = Shape,
  B extends Shape = Shape,
  D extends z.ZodType = z.ZodType,
  A extends Access = Access,
  L extends boolean = boolean,
> {
  /** The operationId, and the name of the method in clients: `products.list`. */
  name: string;
  method: Method;
  /** `/v1` is the API; `/api/auth` is sign-in, which knows no Idempotency-Key. */
  base: "/v1" | "/api/auth";
  /** Below the base, parameters as `:name`. */
  path: string;
  tag: string;
  summary: string;
  description?: string;
  access: A;
  params: P;
  query: Q;
  /** null: the endpoint takes no body. */
  body: B | null;
  /** Takes the bytes of a file of one of these media types as its body, in the place of JSON. */
  rawBody: { types: readonly string[]; maxBytes: number } | null;
  /** Its body is multipart/form-data: one part with a file, called `file`, and `body` beside it as text fields. */
  upload: { maxBytes: number } | null;
  /** What stands in `data`; of a list, one item. */
  data: D;
  /** Answers, and refuses, in the shapes of another API, in the place of the envelope: `data` is the whole body. */
  responseFormat: "openai" | null;
  /** Answers a file of one of these media types, in the place of the envelope. */
  fileTypes: readonly string[] | null;
  /** Answers events as they come (text/event-stream), in the place of the envelope; `data` is what stands in each. */
  streamsEvents: boolean;
  /** Answers them when asked to, by `stream: true` or by Accept. */
  canStream: boolean;
  /** A list answers an array in `data` and page, limit, total in `meta`. */
  list: L;
  status: 200 | 201;
  /** Also answers 202, with the same data, when the outcome is not known yet. */
  mayBePending: boolean;
  /** Whether `Prefer: wait=N` has it answer 200 instead, where what was begun ends in time. */
  supportsPreferWait: boolean;
  /** Also answers 202, with this in `data`, when it goes on without its caller (Prefer: respond-async). */
  acceptedData: z.ZodType | null;
  /** A session must come from a sign-in of the last 15 minutes: what the endpoint gives outlives the session. A key or token is not asked. */
  requiresFreshSignIn: boolean;
  /** Its answer shows a secret once: it is not kept for a repeat of the Idempotency-Key, which is then 409 CONFLICT. */
  showsSecret: boolean;
  /** Honours If-Match. */
  supportsIfMatch: boolean;
  /** Whether a request counts in the quotas of its caller, and is refused when they are used up. */
  countsInQuota: boolean;
  /** The codes of its own; those that follow from its shape are added by errorsOf(). */
  errors: readonly ErrorCode[];
  /** A request body that works, for the reference. */
  example?: z.input<B>;
}

type EndpointInput<
  P extends Shape,
  Q extends Shape,
  B extends Shape,
  D extends z.ZodType,
  A extends Access,
  L extends boolean,
> = Omit<Partial<Endpoint<P, Q, B, D, A, L>>, "name" | "method" | "path" | "summary" | "access" | "data"> &
  Pick<Endpoint<P, Q, B, D, A, L>, "name" | "method" | "path" | "summary" | "access" | "data">;

const nothing = z.strictObject({});

export function endpoint<
  const A extends Access,
  D extends z.ZodType,
  P extends Shape = z.ZodObject<Record<never, never>>,
  Q extends Shape = z.ZodObject<Record<never, never>>,
  B extends Shape = z.ZodObject<Record<never, never>>,
  const L extends boolean = false,
>(draft: EndpointInput<P, Q, B, D, A, L>): Endpoint<P, Q, B, D, A, L> {
  return {
    tag: draft.name.split(".")[0]!,
    params: nothing as unknown as P,
    query: nothing as unknown as Q,
    body: null,
    rawBody: null,
    responseFormat: null,
    fileTypes: null,
    streamsEvents: false,
    canStream: false,
    upload: null,
    list: false as L,
    status: 200,
    base: "/v1",
    mayBePending: false,
    supportsPreferWait: false,
    acceptedData: null,
    requiresFreshSignIn: false,
    showsSecret: false,
    supportsIfMatch: false,
    countsInQuota: true,
    errors: [],
    ...draft,
  };
}

/** What a handler is given: parsed and typed. */
export type Input<E extends Endpoint> = {
  params: z.output<E["params"]>;
  query: z.output<E["query"]>;
  body: z.output<NonNullable<E["body"]>>;
};

/** What stands in `data`; of a list, one item. */
export type Data<E extends Endpoint> = z.input<E["data"]>;

/** Every code that the endpoint can answer with: its own and those that follow from its shape. */
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

/** Whether it takes an Idempotency-Key. */
export const isRepeatable = ({ method, base }: Endpoint) => method === "POST" && base === "/v1";
