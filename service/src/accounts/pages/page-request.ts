import type { FastifyReply, FastifyRequest } from "fastify";
import type { Context, SessionCaller } from "../../core/context.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { clearedSessionCookie } from "../../platform/http/envelope.ts";
import { safeReturnTo } from "../../platform/http/return-to.ts";
import { setCookies } from "../../platform/http/send-response.ts";
import { findUser, toUserId } from "../people/users.ts";
import { authenticateSession } from "../sessions/sessions.ts";

export interface SignedInUser {
  name: string;
  email: string;
  session: SessionCaller;
}

export interface PageRequest {
  user: SignedInUser | null;
  /** A path of this origin, to go to after the sign-in. */
  returnTo: string;
  query: Record<string, unknown>;
}

export async function readPageRequest(
  ctx: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<PageRequest> {
  const query = request.query as Record<string, unknown>;
  const user = await findSignedInUser(ctx, request);
  if (!user) clearInvalidSession(request, reply);
  return { user, returnTo: safeReturnTo(query["returnTo"]), query };
}

/** An invalid session cookie would hide other credentials: the API never falls back to another one. */
function clearInvalidSession(request: FastifyRequest, reply: FastifyReply): void {
  if (request.cookies[SESSION_COOKIE] === undefined) return;
  delete request.cookies[SESSION_COOKIE];
  setCookies(reply, [clearedSessionCookie]);
}

async function findSignedInUser(ctx: Context, request: FastifyRequest): Promise<SignedInUser | null> {
  const token = request.cookies[SESSION_COOKIE];
  const session = token === undefined ? null : await authenticateSession(ctx, token);
  if (!session) return null;
  const { name, email } = await findUser(ctx, toUserId(session.userId));
  return { name, email, session };
}

/** Keeps other parameters of the path. */
export function withReturnTo(path: string, returnTo: string): string {
  if (returnTo === safeReturnTo(undefined)) return path;
  return `${path}${path.includes("?") ? "&" : "?"}returnTo=${encodeURIComponent(returnTo)}`;
}
