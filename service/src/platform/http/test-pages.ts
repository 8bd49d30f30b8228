import type { FastifyReply, FastifyRequest } from "fastify";
import type { Context } from "../../core/context.ts";
import { digestOf, isSameDigest } from "../../core/digest.ts";
import { ApiError } from "../../core/errors.ts";
import { testPageTokens } from "../../core/test-page-tokens.ts";
import { wantsJson } from "./accept.ts";
import { parseBearer } from "./authenticate.ts";
import { isLocalRequest } from "./local-request.ts";
import { pathOf } from "./request-path.ts";
import { setCookies } from "./send-response.ts";

const COOKIE = "__Host-test-pages";
const COOKIE_SECONDS = 30 * 86_400;

/**
 * For pages of a test environment that show all emails and payments: a local request or the token is required. A browser
 * sends the token once in the query, then in a cookie, so that no link contains it.
 */
export function requireTestPageAccess(ctx: Context) {
  const digests = testPageTokens(ctx.config).map(digestOf);
  const isToken = (given: unknown) =>
    typeof given === "string" && digests.some((digest) => isSameDigest(digest, digestOf(given)));
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const given = (request.query as Record<string, unknown>)["token"];
    if (isToken(given)) {
      if (wantsJson(request) || request.method !== "GET") return;
      setCookies(reply, [{ name: COOKIE, value: String(given), maxAgeSeconds: COOKIE_SECONDS }]);
      return reply.header("cache-control", "no-store").redirect(encodeURI(pathOf(request)), 303);
    }
    if (isToken(request.cookies[COOKIE]) || isToken(parseBearer(request.headers.authorization))) return;
    if (!isLocalRequest(request, ctx.links.origin())) throw new ApiError("NOT_FOUND");
  };
}
