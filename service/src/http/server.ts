import { maxHeaderSize } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import cors from "@fastify/cors";
import { type Endpoint, type ErrorCode, errorsOf } from "@stoa/contract";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { v7 } from "uuid";
import { type Caller, type Context, isMember } from "../context.ts";
import { isDatabaseDown } from "../db/database.ts";
import type { Page, Paging } from "../db/paging.ts";
import { ApiError, invalidRequest } from "../errors.ts";
import { authenticate, type Identify, mustBeAllowed } from "./authenticate.ts";
import { digest, type Rendered, renderError, renderOne, renderPage } from "./envelope.ts";
import { type Outcome, runOnce } from "./idempotency.ts";
import { parseJsonBody } from "./json-body.ts";
import type { Metrics } from "./metrics.ts";
import { isApi, pathOf, toRoutable } from "./request-path.ts";
import type { Route } from "./route.ts";
import { validate } from "./validate.ts";

const BODY_LIMIT_BYTES = 1024 * 1024;
const MAX_IDEMPOTENCY_KEY = 255;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

export interface Door {
  ctx: Context;
  routes: Route[];
  identify: Identify;
  metrics: Metrics;
  /** Pages and documents beside the API: reference, health, signed links. */
  pages(app: FastifyInstance): void;
  /** Tests: sees every answer before it is sent, and throws when it is not as the contract says. */
  inspect?(endpoint: Endpoint, answer: { status: number; body: string; error?: ErrorCode }): void;
}

declare module "fastify" {
  interface FastifyRequest {
    caller: Caller | null;
    startedAt: number;
  }
  interface FastifyContextConfig {
    endpoint?: Endpoint;
  }
}

const SECURITY_HEADERS = {
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-opener-policy": "same-origin",
  "x-frame-options": "DENY",
};

const metaOf = (ctx: Context, request: FastifyRequest) => ({
  timestamp: ctx.now().toISOString(),
  request_id: request.id,
});

export async function buildServer(door: Door): Promise<FastifyInstance> {
  const app = Fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && REQUEST_ID.test(given) ? given : v7();
    },
    rewriteUrl: (request) => toRoutable(request.url ?? "/"),
    // Node takes no longer target: an id of any length is looked for, and not found.
    routerOptions: { maxParamLength: maxHeaderSize },
    forceCloseConnections: "idle",
    clientErrorHandler: (error, socket) => refuseUnreadable(door, error, socket),
  });
  app.decorateRequest("caller", null);
  app.decorateRequest("startedAt", 0);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  // Before CORS, which answers a preflight by itself.
  app.addHook("onRequest", async (request, reply) => {
    request.startedAt = performance.now();
    reply.headers(SECURITY_HEADERS).header("x-request-id", request.id);
  });
  await app.register(cors, {
    delegator: (request: FastifyRequest, done: (error: null, options: object) => void) =>
      done(null, {
        origin: isApi(request) ? "*" : false,
        strictPreflight: false,
        exposedHeaders: ["ETag", "Link", "Retry-After", "X-Request-Id", "Idempotent-Replayed"],
        methods: ["GET", "POST", "PATCH", "PUT", "DELETE"],
        maxAge: 86_400,
      }),
  });
  app.addHook("onRequest", async (request) => {
    if (request.is404 && isApi(request)) await enter(door, request);
  });
  app.addHook("onResponse", async (request, reply) => {
    const ms = performance.now() - request.startedAt;
    observe(door, request, reply, ms);
  });
  app.setErrorHandler((error, request, reply) => sendError(door, request, reply, error));
  app.setNotFoundHandler((request) => {
    throw notFound(door.routes, request);
  });
  for (const route of door.routes) addRoute(app, door, route);
  door.pages(app);
  return app;
}

/** One line a request, and its time in the metrics. The route's pattern stands for the path; no query, no credential. */
function observe({ ctx, metrics }: Door, request: FastifyRequest, reply: FastifyReply, ms: number): void {
  const route = request.routeOptions.url ?? "unknown";
  metrics.observeRequest(request.method, route, reply.statusCode, ms);
  ctx.log.info({
    request: request.id,
    method: request.method,
    route,
    status: reply.statusCode,
    ms: Math.round(ms * 10) / 10,
    caller: request.caller && isMember(request.caller) ? request.caller.userId : undefined,
  });
}

/** The API's first question, before a path is told to exist: who asks? */
async function enter(door: Door, request: FastifyRequest): Promise<void> {
  const apiKeyInQuery = (request.query as Record<string, unknown>)["api_key"];
  request.caller = await authenticate(door.identify, {
    authorization: request.headers.authorization,
    apiKeyInQuery,
  });
}

function notFound(routes: Route[], request: FastifyRequest): ApiError {
  const path = pathOf(request).replace(/^\/v1/, "");
  const allowed = routes
    .filter(({ endpoint }) => matches(endpoint.path, path))
    .map(({ endpoint }) => endpoint.method);
  if (allowed.length === 0 || !isApi(request)) return new ApiError("NOT_FOUND");
  return new ApiError("METHOD_NOT_ALLOWED", `This path takes ${[...new Set(allowed)].join(", ")}.`, {
    allowed: [...new Set(allowed)],
  });
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split("/");
  const given = path.split("/");
  return (
    wanted.length === given.length && wanted.every((part, at) => part.startsWith(":") || part === given[at])
  );
}

function addRoute(app: FastifyInstance, door: Door, route: Route): void {
  const { endpoint } = route;
  app.route({
    method: endpoint.method,
    url: `/v1${endpoint.path}`,
    config: { endpoint },
    exposeHeadRoute: false,
    onRequest: async (request) => {
      await enter(door, request);
      mustBeAllowed(request.caller!, endpoint.access);
    },
    handler: (request, reply) => answer(door, route, request, reply),
  });
}

async function answer(door: Door, route: Route, request: FastifyRequest, reply: FastifyReply) {
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const run = () => render(door, route, request, reply, bytes);
  const key = idempotencyKeyOf(request);
  const outcome =
    key === null || route.endpoint.method !== "POST"
      ? await run()
      : await runOnce(
          door.ctx,
          { caller: callerKey(request), route: routeKey(request), key, body: bytes },
          run,
        );
  return send(request, reply, outcome);
}

const callerKey = ({ caller }: FastifyRequest) =>
  caller && isMember(caller) ? caller.userId : (caller?.guestId ?? "");

/** A digest, because a path may be longer than an index takes. */
const routeKey = (request: FastifyRequest) => digest(`POST ${pathOf(request)}`);

function idempotencyKeyOf(request: FastifyRequest): string | null {
  const key = request.headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key === "string" && /^[\x20-\x7e]+$/.test(key) && key.length <= MAX_IDEMPOTENCY_KEY) return key;
  throw invalidRequest("Idempotency-Key", `must be 1 to ${MAX_IDEMPOTENCY_KEY} printable ASCII characters`);
}

/** Parses, calls the verb and renders what it answers; an ApiError is an answer too. */
async function render(
  door: Door,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  bytes: Buffer,
): Promise<Outcome> {
  const { endpoint } = route;
  const meta = metaOf(door.ctx, request);
  let outcome: Outcome;
  try {
    const body = parseJsonBody(bytes, request.headers["content-type"]);
    const { api_key: _, ...query } = request.query as Record<string, unknown>;
    const input = validate(endpoint, { params: request.params, query, body });
    const facts = {
      ifMatch: request.headers["if-match"] ?? null,
      clientGone: () => goneSignal(request, reply),
    };
    const result = await route.handle(door.ctx, request.caller!, input as never, facts);
    outcome = endpoint.list
      ? renderPage(result as Page<unknown>, input.query as unknown as Paging, request.url, meta)
      : renderOne(endpoint, result, meta);
  } catch (error) {
    const known = toApiError(door, request, error);
    outcome = { ...renderError(known, docUrl(door.ctx, known.code), meta), error: known.code };
  }
  door.inspect?.(endpoint, outcome);
  return outcome;
}

function goneSignal(request: FastifyRequest, reply: FastifyReply): AbortSignal | null {
  if (request.headers["idempotency-key"] !== undefined) return null;
  const gone = new AbortController();
  if (reply.raw.destroyed) gone.abort(new Error("the client went away"));
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) gone.abort(new Error("the client went away"));
  });
  return gone.signal;
}

const docUrl = (ctx: Context, code: ErrorCode) => `${ctx.links.origin()}/docs/errors#${code}`;

function send(request: FastifyRequest, reply: FastifyReply, { status, body, headers }: Rendered) {
  reply.headers(headers);
  if (headers["etag"]) reply.headers({ "cache-control": "private", vary: "Authorization, Cookie" });
  if ("api_key" in (request.query as object)) reply.header("cache-control", "no-store");
  if (status === 200 && request.method === "GET" && isCurrent(request, headers["etag"])) {
    return reply.code(304).send();
  }
  return reply.code(status).header("content-type", "application/json; charset=utf-8").send(body);
}

/** RFC 9110, 13.1.2: If-None-Match compares weakly and may list several. */
function isCurrent(request: FastifyRequest, etag: string | undefined): boolean {
  const given = request.headers["if-none-match"];
  if (!given || !etag) return false;
  return given === "*" || given.split(",").some((tag) => tag.trim().replace(/^W\//, "") === etag);
}

/** What Fastify itself refuses, in our words. */
const FRAMEWORK_ERRORS: Record<string, () => ApiError> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () =>
    new ApiError("PAYLOAD_TOO_LARGE", `The request body is larger than ${BODY_LIMIT_BYTES} bytes.`),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new ApiError("UNSUPPORTED_MEDIA_TYPE"),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () =>
    invalidRequest("body", "has another length than Content-Length says"),
};

function toApiError({ ctx }: Door, request: FastifyRequest, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const known = FRAMEWORK_ERRORS[(error as { code?: string }).code ?? ""];
  if (known) return known();
  if (!request.raw.complete) return invalidRequest("body", "ended before it was whole");
  if (isDatabaseDown(error)) {
    ctx.log.error({ request: request.id, err: error }, "the database does not answer");
    return new ApiError("SERVICE_UNAVAILABLE", undefined, undefined, 1);
  }
  ctx.log.error({ request: request.id, route: request.routeOptions?.url, err: error }, "unexpected error");
  return new ApiError("INTERNAL_ERROR");
}

function sendError(door: Door, request: FastifyRequest, reply: FastifyReply, error: unknown) {
  const known = toApiError(door, request, error);
  const rendered = renderError(known, docUrl(door.ctx, known.code), metaOf(door.ctx, request));
  const { endpoint } = request.routeOptions?.config ?? {};
  if (endpoint) door.inspect?.(endpoint, { ...rendered, error: known.code });
  const allowed = known.details?.["allowed"];
  if (known.code === "METHOD_NOT_ALLOWED" && Array.isArray(allowed))
    reply.header("allow", allowed.join(", "));
  return send(request, reply, rendered);
}

/** What is no HTTP, or has too many headers for a request to be made of it, is told so in the envelope all the same. */
function refuseUnreadable({ ctx }: Door, { code }: { code?: string }, socket: Socket): void {
  if (code === "ECONNRESET" || socket.destroyed) return;
  const refusal =
    code === "HPE_HEADER_OVERFLOW"
      ? invalidRequest(
          "headers",
          `must be shorter than ${maxHeaderSize} bytes together with the path and query`,
        )
      : invalidRequest("request", "is not readable as HTTP");
  const meta = { timestamp: ctx.now().toISOString(), request_id: v7() };
  const { body } = renderError(refusal, docUrl(ctx, refusal.code), meta);
  const headers = {
    ...SECURITY_HEADERS,
    "x-request-id": meta.request_id,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** The origin at which the server listens. */
export function originOf(app: FastifyInstance): string {
  const { address, family, port } = app.server.address() as AddressInfo;
  return `http://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** Throws when an answer is none that the contract declares: what tests give as `inspect`. */
export function mustBeDeclared(
  endpoint: Endpoint,
  answer: { status: number; body: string; error?: ErrorCode },
): void {
  if (answer.error) {
    if (answer.error === "METHOD_NOT_ALLOWED" || errorsOf(endpoint).includes(answer.error)) return;
    throw new Error(`${endpoint.name} answered ${answer.error}, which it does not declare`);
  }
  const statuses = [endpoint.status, ...(endpoint.maybeAccepted ? [202] : [])];
  if (!statuses.includes(answer.status as 200)) {
    throw new Error(`${endpoint.name} answered ${answer.status}, declared are ${statuses.join(", ")}`);
  }
  const { data } = JSON.parse(answer.body) as { data: unknown };
  for (const item of endpoint.list ? (data as unknown[]) : [data]) strictly(endpoint, item);
}

function strictly(endpoint: Endpoint, item: unknown): void {
  const result = endpoint.data.safeParse(item);
  if (!result.success)
    throw new Error(`${endpoint.name} answered what its schema refuses: ${result.error.message}`);
  const lost = JSON.stringify(result.data).length < JSON.stringify(item).length;
  if (lost) throw new Error(`${endpoint.name} answered fields that its schema does not declare`);
}
