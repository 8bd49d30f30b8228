import type { FastifyRequest } from "fastify";
import type { RequestSource } from "../../core/context.ts";

export const requestSourceOf = (request: FastifyRequest): RequestSource => ({
  ip: request.ip,
  userAgent: request.headers["user-agent"]?.slice(0, 300) ?? null,
  requestId: request.id,
});
