import type { FastifyRequest } from "fastify";
import { ApiError } from "../../core/errors.ts";

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * Refuses a change that another site makes a browser send (CSRF; at sign-in paths login CSRF). `Sec-Fetch-Site`, which
 * pages cannot forge, must be same-origin; without it, `Origin` must match. With a cookie as credential and neither
 * header, `proof` is required: a header that no form can send. Other clients pass.
 */
export function requireSameOrigin(
  request: Pick<FastifyRequest, "method" | "headers">,
  origin: string,
  need: "proof" | "no objection",
): void {
  if (SAFE_METHODS.has(request.method) || isSameOrigin(request, origin, need)) return;
  throw crossOriginError();
}

export const crossOriginError = () =>
  new ApiError("UNAUTHORIZED", "A page of another site may not do this in your name.", {
    required: "same-origin",
  });

/** Browsers send one of the two with every POST; other programs send neither. */
export const isFromBrowser = ({ headers }: FastifyRequest): boolean =>
  headers["sec-fetch-site"] !== undefined || headers.origin !== undefined;

/** Whether a page of another site led here; `none` is a typed address. */
export const isCrossSite = ({ headers }: FastifyRequest): boolean =>
  ["cross-site", "same-site"].includes(String(headers["sec-fetch-site"]));

function isSameOrigin(
  { headers }: Pick<FastifyRequest, "headers">,
  origin: string,
  need: "proof" | "no objection",
): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  if (headers.origin !== undefined) return headers.origin === origin;
  return need === "no objection" || headers["x-requested-with"] !== undefined;
}
