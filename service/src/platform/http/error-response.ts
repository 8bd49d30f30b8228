import type { Socket } from "node:net";
import type { ErrorCode } from "@stoa/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { v7 } from "uuid";
import type { Context } from "../../core/context.ts";
import { ApiError, invalidRequest } from "../../core/errors.ts";
import { maxHeaderSize } from "../../core/node-http.ts";
import { isAccountClosed, isDatabaseUnavailable } from "../db/database.ts";
import { type RenderedResponse, renderError } from "./envelope.ts";
import { sendErrorPage, wantsErrorPage } from "./error-page.ts";
import { renderOpenAiError } from "./openai-error.ts";
import { isMcp, isOpenAi, pathOf } from "./request-path.ts";
import type { Route } from "./route.ts";
import { sendResponse } from "./send-response.ts";
import { type ServerDependencies, securityHeadersFor } from "./server-dependencies.ts";
import { wwwAuthenticateOf } from "./www-authenticate.ts";

export const BODY_LIMIT_BYTES = 1024 * 1024;

export const metaOf = (ctx: Context, request: FastifyRequest) => ({
  timestamp: ctx.now().toISOString(),
  request_id: request.id,
});

const docUrl = (ctx: Context, code: ErrorCode) => `${ctx.links.origin()}/docs/errors#${code}`;

/** 404, or 405 with the methods of the path. */
export function notFound(routes: Route[], request: FastifyRequest): ApiError {
  const path = pathOf(request);
  const matching = routes.filter(({ endpoint }) => matches(endpoint.base + endpoint.path, path));
  // Like the router: /products/facets goes before /products/:productId.
  const fewest = Math.min(...matching.map(({ endpoint }) => countParameters(endpoint.path)));
  const allowed = matching
    .filter(({ endpoint }) => countParameters(endpoint.path) === fewest)
    .flatMap(({ endpoint: { method } }) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  if (allowed.length === 0) return new ApiError("NOT_FOUND");
  return new ApiError("METHOD_NOT_ALLOWED", `This path accepts ${[...new Set(allowed)].join(", ")}.`, {
    allowed: [...new Set(allowed)],
  });
}

const countParameters = (pattern: string): number => pattern.split("/:").length - 1;

function matches(pattern: string, path: string): boolean {
  const expected = pattern.split("/");
  const actual = path.split("/");
  return (
    expected.length === actual.length &&
    expected.every((part, at) => part.startsWith(":") || part === actual[at])
  );
}

/** Fastify's own errors. */
const FRAMEWORK_ERRORS: Record<string, (limitBytes: number) => ApiError> = {
  FST_ERR_CTP_BODY_TOO_LARGE: (limitBytes) =>
    new ApiError("PAYLOAD_TOO_LARGE", `The request body is larger than ${limitBytes} bytes.`),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new ApiError("UNSUPPORTED_MEDIA_TYPE"),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => invalidRequest("body", "is not as long as Content-Length says"),
};

export function toApiError({ ctx }: ServerDependencies, request: FastifyRequest, error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const known = FRAMEWORK_ERRORS[(error as { code?: string }).code ?? ""];
  if (known) return known(request.routeOptions?.bodyLimit ?? BODY_LIMIT_BYTES);
  if (isAccountClosed(error)) return accountClosedError(request);
  // A disconnected client's socket fails with the same error as the database's.
  if (request.raw.destroyed && !request.raw.complete)
    return invalidRequest("body", "ended before it was whole");
  if (isDatabaseUnavailable(error)) {
    ctx.refusedWrites.record(error);
    ctx.log.error({ request: request.id, err: error }, "the database does not answer");
    return new ApiError("SERVICE_UNAVAILABLE", undefined, undefined, 1);
  }
  ctx.log.error({ request: request.id, route: request.routeOptions?.url, err: error }, "unexpected error");
  return new ApiError("INTERNAL_ERROR");
}

/** The account was closed during the request. */
const accountClosedError = (request: FastifyRequest) =>
  new ApiError(
    request.routeOptions.config.endpoint?.base === "/api/auth" ? "INVALID_TOKEN" : "INVALID_API_KEY",
  );

/** The `error` of the envelope, for an event. */
export const errorBodyOf = (ctx: Context, { code, message, details }: ApiError) => ({
  ...{ code, message },
  ...(details && { details }),
  docUrl: docUrl(ctx, code),
});

export function renderErrorResponse(
  { ctx }: ServerDependencies,
  request: FastifyRequest,
  error: ApiError,
): RenderedResponse<string> {
  request.errorCode = error.code;
  const resource = isMcp(request) ? "/mcp" : "/v1";
  const challenge = wwwAuthenticateOf(ctx.links.origin(), resource, error, request.caller);
  if (isOpenAi(request)) return renderOpenAiError(error, challenge);
  return renderError(error, docUrl(ctx, error.code), metaOf(ctx, request), challenge);
}

export function sendError(
  server: ServerDependencies,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
) {
  const known = toApiError(server, request, error);
  if (wantsErrorPage(request)) return sendErrorPage(request, reply, known);
  const rendered = renderErrorResponse(server, request, known);
  const { endpoint } = request.routeOptions?.config ?? {};
  if (endpoint) server.inspect?.(endpoint, { ...rendered, error: known.code });
  const allowed = known.details?.["allowed"];
  if (known.code === "METHOD_NOT_ALLOWED" && Array.isArray(allowed))
    reply.header("allow", allowed.join(", "));
  return sendResponse(request, reply, rendered);
}

const UNREADABLE: Record<string, ApiError> = {
  HPE_HEADER_OVERFLOW: invalidRequest(
    "headers",
    `must be shorter than ${maxHeaderSize} bytes together with the path and query`,
  ),
  ERR_HTTP_REQUEST_TIMEOUT: invalidRequest("request", "did not arrive in time"),
};
const CLOSE_AFTER_MS = 2_000;

/** Answers requests that Node's HTTP parser refused, in the envelope, and closes the connection. */
export function rejectUnreadable(
  { ctx }: ServerDependencies,
  { code }: { code?: string },
  socket: Socket,
): void {
  if (code === "ECONNRESET" || socket.destroyed) return;
  const refusal = UNREADABLE[code ?? ""] ?? invalidRequest("request", "is not readable as HTTP");
  const meta = { timestamp: ctx.now().toISOString(), request_id: v7() };
  const { body } = renderError(refusal, docUrl(ctx, refusal.code), meta);
  const headers = {
    ...securityHeadersFor(ctx.links.origin()),
    "x-request-id": meta.request_id,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    connection: "close",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  setTimeout(() => socket.destroy(), CLOSE_AFTER_MS).unref();
  socket.end(`HTTP/1.1 400 Bad Request\r\n${lines.join("\r\n")}\r\n\r\n${body}`);
}
