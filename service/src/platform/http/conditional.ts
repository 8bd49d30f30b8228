import type { FastifyRequest } from "fastify";
import { ApiError } from "../../core/errors.ts";

const opaque = (tag: string) => tag.replace(/^W\//, "");

/**
 * Throws 412 if the resource has changed since the caller read it. A proxy that compresses a response weakens its tag, which the
 * caller then sends back: the service itself has strong tags only.
 */
export function mustMatch(ifMatch: string | null, etag: string): void {
  if (ifMatch === null || ifMatch.trim() === "*") return;
  const tags = ifMatch.split(",").map((tag) => opaque(tag.trim()));
  if (!tags.includes(etag)) throw new ApiError("PRECONDITION_FAILED");
}

/** RFC 9110, 13.1.2: If-None-Match compares weakly and may list several. */
export function isCurrent(request: FastifyRequest, etag: string | undefined): boolean {
  const ifNoneMatch = request.headers["if-none-match"];
  if (!ifNoneMatch || !etag) return false;
  return ifNoneMatch === "*" || ifNoneMatch.split(",").some((tag) => opaque(tag.trim()) === opaque(etag));
}
