import cookie from "@fastify/cookie";
import cors from "@fastify/cors";
import type { Endpoint } from "@stoa/contract";
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { v7 } from "uuid";
import { isMember, responsibleCallerOf } from "../../core/context.ts";
import { invalidRequest } from "../../core/errors.ts";
import { removePorts } from "../../core/network.ts";
import { maxHeaderSize } from "../../core/node-http.ts";
import { mustBeAllowedInView } from "./account-view.ts";
import { mustBeAllowed } from "./authenticate.ts";
import { authenticateRequest, identifiedCallerOf } from "./authenticate-request.ts";
import { bodyDeadlines, limitBodyTime, uploadDeadlines } from "./body-deadlines.ts";
import { BODY_LIMIT_BYTES, notFound, rejectUnreadable, sendError } from "./error-response.ts";
import { mustBeFresh } from "./fresh-sign-in.ts";
import { handleRequest } from "./handle-request.ts";
import { createProxyWarning } from "./local-request.ts";
import { drainRequest } from "./multipart.ts";
import { hasPlainCookies, readPlainCookies } from "./plain-cookies.ts";
import { RATE_LIMIT_HEADERS } from "./rate-limit.ts";
import { reportResponse } from "./report-response.ts";
import { isApi, toRoutable } from "./request-path.ts";
import { requestSourceOf } from "./request-source.ts";
import {
  endRequestSpan,
  QUIET_ROUTES,
  startRequestSpan,
  traceIdOf,
  withRequestSpan,
} from "./request-span.ts";
import type { Route } from "./route.ts";
import { requireSameOrigin } from "./same-origin.ts";
import { type ServerDependencies, securityHeadersFor } from "./server-dependencies.ts";

const SIGN_IN_BODY_LIMIT_BYTES = 256 * 1024;
const EXPOSED_HEADERS = [
  "ETag",
  "Link",
  "Retry-After",
  "WWW-Authenticate",
  "X-Request-Id",
  "Idempotent-Replayed",
  "X-Should-Retry",
  ...RATE_LIMIT_HEADERS,
];
/** Any page may call the API with a credential of its own; cookies are not sent. */
const CORS_OPTIONS = {
  origin: "*",
  strictPreflight: false,
  exposedHeaders: EXPOSED_HEADERS.join(", "),
  methods: "GET, HEAD, POST, PATCH, PUT, DELETE",
  maxAge: 86_400,
};
const HEADERS_MS = 20_000;
const CHECK_HEADERS_MS = 5_000;
/** For a whole request: an upload may wait in its queue before its own deadline begins. */
const REQUEST_MS = 2 * uploadDeadlines.totalMs;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

export async function buildServer(server: ServerDependencies): Promise<FastifyInstance> {
  const app = createApp(server);
  addFirstHook(app, server);
  await app.register(cors, {
    delegator: (request: FastifyRequest, done: (error: null, options: object) => void) =>
      done(null, isApi(request) ? CORS_OPTIONS : { origin: false }),
  });
  await app.register(cookie);
  addHooks(app, server);
  app.setErrorHandler((error, request, reply) => sendError(server, request, reply, error));
  app.setNotFoundHandler((request) => {
    throw notFound(server.routes, request);
  });
  await addRoutes(app, server);
  server.addPages(app);
  return app;
}

function createApp(server: ServerDependencies): FastifyInstance {
  const { headersMs = HEADERS_MS } = server.requestDeadlines ?? {};
  const app = Fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    trustProxy: server.ctx.config.trustProxy ?? false,
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers["x-request-id"];
      return typeof given === "string" && REQUEST_ID.test(given) ? given : v7();
    },
    rewriteUrl: (request) => {
      if (server.ctx.config.trustProxy) removePorts(request.headers);
      return toRoutable(request.url ?? "/");
    },
    // Node accepts no longer target, so an id of any length is 404.
    routerOptions: { maxParamLength: maxHeaderSize },
    forceCloseConnections: "idle",
    schemaController: { compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema } },
    // Requests on open connections are answered until the close.
    return503OnClosing: false,
    requestTimeout: REQUEST_MS,
    http: { headersTimeout: headersMs, connectionsCheckingInterval: Math.min(headersMs, CHECK_HEADERS_MS) },
    clientErrorHandler: (error, socket) => rejectUnreadable(server, error, socket),
  });
  app.decorate("guests", server.ctx.guests);
  app.decorate("hasPlainCookies", () => hasPlainCookies(server.ctx));
  app.decorateRequest("caller", null);
  app.decorateRequest("startedAt", 0);
  app.decorateRequest("errorCode", null);
  app.decorateRequest("span", null);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
  return app;
}

/** The contract checks requests instead. Without own compilers, Fastify loads a hundred modules of its default ones. */
const refuseSchema = (): never => {
  throw new Error("A route has a schema of Fastify: describe it in the contract instead.");
};

/** Before CORS, which answers a preflight by itself. */
function addFirstHook(app: FastifyInstance, server: ServerDependencies): void {
  const warnOfProxy = createProxyWarning(server.ctx);
  const deadlines = { ...bodyDeadlines, ...server.requestDeadlines?.body };
  app.addHook("onRequest", (request, reply, done) => {
    request.startedAt = performance.now();
    warnOfProxy(request);
    request.span = startRequestSpan(request);
    reply.headers(securityHeadersFor(server.ctx.links.origin())).header("x-request-id", request.id);
    if (!isReadInTurn(request))
      limitBodyTime(deadlines, request, reply, (reason) =>
        sendError(server, request, reply, invalidRequest("body", reason)),
      );
    done();
  });
}

function addHooks(app: FastifyInstance, server: ServerDependencies): void {
  app.addHook("onRequest", (request, _reply, done) => {
    if (request.headers.cookie !== undefined && app.hasPlainCookies()) readPlainCookies(request);
    done();
  });
  app.addHook("onRequest", (request, reply, done) => {
    if (!request.is404 || !isApi(request)) return done();
    authenticateRequest(server, request, reply).then(() => done(), done);
  });
  // After the body: its events have the async context of the connection.
  app.addHook("preHandler", (request, _reply, done) => withRequestSpan(request, done));
  app.addHook("onResponse", (request, reply, done) => {
    observe(server, request, reply, performance.now() - request.startedAt);
    if (isReadInTurn(request)) drainRequest(request.raw);
    done();
  });
}

async function addRoutes(app: FastifyInstance, server: ServerDependencies): Promise<void> {
  for (const route of server.routes) if (!isLarge(route.endpoint)) addRoute(app, server, route);
  await app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    // body.ts reads it after the permission check, in its queue.
    scope.addContentTypeParser("*", (_request, _body, done) => done(null));
    for (const route of server.routes) if (isLarge(route.endpoint)) addRoute(scope, server, route);
    done();
  });
}

const isLarge = ({ request }: Endpoint): boolean => request.kind === "upload" || request.kind === "raw";

function isReadInTurn(request: FastifyRequest): boolean {
  const { endpoint } = request.routeOptions.config;
  return endpoint !== undefined && isLarge(endpoint);
}

/** Logs and measures by the route's pattern: paths and queries may have ids and secrets. */
function observe(server: ServerDependencies, request: FastifyRequest, reply: FastifyReply, ms: number): void {
  const { ctx, metrics } = server;
  const route = request.routeOptions.url ?? "unknown";
  metrics.observeRequest(request.method, route, reply.statusCode, ms);
  // Successful health checks would fill the log.
  const level = QUIET_ROUTES.has(route) && reply.statusCode < 400 ? "debug" : "info";
  ctx.log[level]({
    request: request.id,
    trace: traceIdOf(request),
    method: request.method,
    route,
    status: reply.statusCode,
    ms: Math.round(ms * 10) / 10,
    caller: accountOf(request),
  });
  reportResponse(server, request, reply.statusCode);
  endRequestSpan(request, reply);
}

function accountOf({ caller }: FastifyRequest): string | undefined {
  const responsible = caller && responsibleCallerOf(caller);
  return responsible && isMember(responsible) ? responsible.userId : undefined;
}

const bodyLimitOf = ({ base }: Endpoint): number =>
  base === "/api/auth" ? SIGN_IN_BODY_LIMIT_BYTES : BODY_LIMIT_BYTES;

function addRoute(app: FastifyInstance, server: ServerDependencies, route: Route): void {
  const { endpoint } = route;
  app.route({
    method: endpoint.method,
    url: endpoint.base + endpoint.path,
    config: { endpoint },
    bodyLimit: bodyLimitOf(endpoint),
    onRequest: async (request, reply) => {
      if (endpoint.base === "/api/auth") {
        server.limits.mustNotBeBlocked(request.ip);
        requireSameOrigin(request, server.ctx.links.origin(), "no objection");
        return;
      }
      // Public endpoints identify no caller and count in no quota.
      if (endpoint.access.who === "public") return;
      await authenticateRequest(server, request, reply, { countsInQuota: endpoint.countsInQuota });
      await checkAccess(server, endpoint, request);
      mustBeAllowedInView(identifiedCallerOf(request), endpoint);
      if (endpoint.requiresFreshSignIn) mustBeFresh(server.ctx, identifiedCallerOf(request));
    },
    handler: (request, reply) => handleRequest(server, route, request, reply),
  });
}

async function checkAccess(
  server: ServerDependencies,
  endpoint: Endpoint,
  request: FastifyRequest,
): Promise<void> {
  const caller = identifiedCallerOf(request);
  try {
    mustBeAllowed(caller, endpoint.access);
  } catch (error) {
    if (endpoint.access.who === "admin" && isMember(caller))
      await server.onAdminRefused?.(caller, endpoint, requestSourceOf(request));
    throw error;
  }
}
