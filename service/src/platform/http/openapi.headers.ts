import type { Endpoint, ErrorCode } from "@stoa/contract";
import type { Json } from "./openapi.schemas.ts";

const header = (description: string, type: "string" | "integer" = "string", example?: unknown): Json => ({
  description,
  schema: { type },
  ...(example !== undefined && { example }),
});

/** Response headers by their component names. */
export const responseHeaders: Record<string, Json> = {
  "X-Request-Id": header("The id of this request, as in `meta.request_id` and in the logs"),
  "X-RateLimit-Limit": header("Requests in the quota that is closest to its limit", "integer", 1000),
  "X-RateLimit-Remaining": header("Requests left in that quota", "integer", 998),
  "X-RateLimit-Reset": header("When that quota starts again, in Unix seconds", "integer", 1_767_225_600),
  "Retry-After": header("Seconds to wait before the next attempt", "integer", 30),
  ETag: header("The version of the returned resource, for If-None-Match and If-Match"),
  Link: header("The first, previous, next and last page (RFC 8288)"),
};

const RATE_LIMIT = ["X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];

const refer = (names: string[]): Json => ({
  headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
});

const isLimited = ({ base, access }: Endpoint) => base === "/v1" && access.who !== "public";

export const successHeadersOf = (endpoint: Endpoint, hasEtag: boolean): Json =>
  refer([
    "X-Request-Id",
    ...(isLimited(endpoint) ? RATE_LIMIT : []),
    ...(hasEtag ? ["ETag"] : []),
    ...(endpoint.response.kind === "list" ? ["Link"] : []),
  ]);

/** Includes Retry-After when a code of this status has one. */
export function failureHeadersOf(endpoint: Endpoint, status: number, codes: ErrorCode[]): Json {
  const isLater = status === 429 || status === 503 || codes.includes("IDEMPOTENCY_IN_PROGRESS");
  return refer([
    "X-Request-Id",
    ...(isLimited(endpoint) && status === 429 ? RATE_LIMIT : []),
    ...(isLater ? ["Retry-After"] : []),
  ]);
}
