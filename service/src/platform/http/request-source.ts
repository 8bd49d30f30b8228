import type { FastifyRequest } from "fastify";
import type { RequestSource } from "../../core/context.ts";

/** Where a request comes from, as sessions and the audit log keep it. */
export const requestSourceOf = (request: FastifyRequest): RequestSource => ({
  ip: request.ip,
  userAgent: request.headers["user-agent"]?.slice(0, 300) ?? null,
  requestId: request.id,
});
