import type { FastifyRequest } from "fastify";
import { GUEST_COOKIE, type RequestCredentials, SESSION_COOKIE } from "./authenticate.ts";
import { requireSameOrigin } from "./same-origin.ts";

/** The request's credentials by their place. They do not hold the request, because the checks of a stream may outlive it. */
export function credentialsOf(
  { method, headers, query, cookies }: FastifyRequest,
  origin: string,
): RequestCredentials {
  return {
    authorization: headers.authorization,
    // An empty parameter counts as absent.
    apiKeyInQuery: (query as Record<string, unknown>)["api_key"] || undefined,
    sessionCookie: cookies[SESSION_COOKIE],
    guestCookie: cookies[GUEST_COOKIE],
    requireSameOrigin: () => requireSameOrigin({ method, headers }, origin, "proof"),
  };
}
