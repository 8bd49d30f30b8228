import type { FastifyRequest } from "fastify";
import { GUEST_COOKIE, type Presented, SESSION_COOKIE } from "./authenticate.ts";
import { mustNotComeFromElsewhere } from "./same-origin.ts";

/** What a request brings that may say who asks. */
export const presentedBy = (request: FastifyRequest, origin: string): Presented => ({
  authorization: request.headers.authorization,
  // An empty parameter counts as absent, this one too.
  apiKeyInQuery: (request.query as Record<string, unknown>)["api_key"] || undefined,
  sessionCookie: request.cookies[SESSION_COOKIE],
  guestCookie: request.cookies[GUEST_COOKIE],
  cameByCookie: () => mustNotComeFromElsewhere(request, origin, "proof"),
});
