import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { SESSION_COOKIE } from "../../platform/http/authenticate.ts";
import { clearedSessionCookie } from "../../platform/http/envelope.ts";
import { DataResponse, type RequestInfo } from "../../platform/http/route.ts";
import { authenticateSession, endSessions } from "../sessions/sessions.ts";

/** An invalid header does not fall back to the cookie, as everywhere. */
export async function logOut(ctx: Context, { bearer, cookies, source }: RequestInfo) {
  const session = await authenticateSession(ctx, bearer ?? cookies[SESSION_COOKIE] ?? "");
  if (!session) throw new ApiError("INVALID_SESSION");
  const { userId, sessionId } = session;
  await ctx.db.transaction().execute(async (tx) => {
    await endSessions(ctx, tx, userId, { only: sessionId });
    await recordAudit(ctx, tx, { actorId: userId, action: "session.ended", source });
  });
  return new DataResponse({ signedOut: true as const }, { cookies: [clearedSessionCookie] });
}
