import type { FastifyRequest } from "fastify";
import { isMember, responsibleCallerOf } from "../../core/context.ts";
import { isApi, pathOf } from "./request-path.ts";
import type { ServerDependencies } from "./server-dependencies.ts";

/** A client that follows its log would fill it. */
const UNREPORTED = "requestLogs.list";
/** A request over the quota costs its client nothing, so it could fill the log. */
const TOO_MANY_REQUESTS = 429;

/** Reports an account's request below /v1 once its response is complete. */
export function reportResponse(server: ServerDependencies, request: FastifyRequest, status: number): void {
  const { caller, errorCode, startedAt, method, id } = request;
  const { endpoint } = request.routeOptions.config;
  const operation = endpoint?.name ?? null;
  if (!server.onResponse || !caller || !isMember(caller) || !isApi(request)) return;
  if (operation === UNREPORTED || status === TOO_MANY_REQUESTS) return;
  server.onResponse({
    caller: responsibleCallerOf(caller),
    requestId: id,
    method,
    path: endpoint?.hasSecretPath ? (request.routeOptions.url ?? "") : pathOf(request),
    operation,
    status,
    // A response that shows a secret has the error of its repeat rendered beside it.
    errorCode: status >= 400 ? errorCode : null,
    durationMs: performance.now() - startedAt,
    userAgent: request.headers["user-agent"] ?? null,
  });
}
