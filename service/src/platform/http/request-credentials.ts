import type { FastifyRequest } from "fastify";
import { GUEST_COOKIE, type RequestCredentials, SESSION_COOKIE } from "./authenticate.ts";
import { requireSameOrigin } from "./same-origin.ts";

/** The request's credentials by their place. */
export const credentialsOf = (request: FastifyRequest, origin: string): RequestCredentials => ({
  authorization: request.headers.authorization,
  // An empty parameter counts as absent.
  apiKeyInQuery: (request.query as Record<string, unknown>)["api_key"] || undefined,
  sessionCookie: request.cookies[SESSION_COOKIE],
  guestCookie: request.cookies[GUEST_COOKIE],
  requireSameOrigin: () => requireSameOrigin(request, origin, "proof"),
});
