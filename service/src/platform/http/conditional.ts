import type { FastifyRequest } from "fastify";
import { ApiError } from "../../core/errors.ts";

/** Throws 412 if the resource has changed since the caller read it. RFC 9110, 13.1.1: If-Match compares strongly. */
export function mustMatch(ifMatch: string | null, etag: string): void {
  if (ifMatch === null || ifMatch.trim() === "*") return;
  const tags = ifMatch.split(",").map((tag) => tag.trim());
  if (!tags.includes(etag)) throw new ApiError("PRECONDITION_FAILED");
}

const opaque = (tag: string) => tag.replace(/^W\//, "");

/** RFC 9110, 13.1.2: If-None-Match compares weakly and may list several. */
export function isCurrent(request: FastifyRequest, etag: string | undefined): boolean {
  const ifNoneMatch = request.headers["if-none-match"];
  if (!ifNoneMatch || !etag) return false;
  return ifNoneMatch === "*" || ifNoneMatch.split(",").some((tag) => opaque(tag.trim()) === opaque(etag));
}
