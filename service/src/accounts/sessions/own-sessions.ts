import type { Session } from "@stoa/contract";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import { mapPage, type Paging } from "../../platform/db/paging.ts";
import { clearedSessionCookie } from "../../platform/http/envelope.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { listActiveSessions, type OwnSessionRow } from "./queries.ts";
import { endSessions, toIdleCutoff } from "./sessions.ts";

const toSession = (row: OwnSessionRow, current: boolean): Session => ({
  id: toId("ses", row.id),
  via: row.via,
  secondFactor: row.secondFactor,
  ip: row.ip,
  userAgent: row.userAgent,
  createdAt: row.createdAt.toISOString(),
  lastSeenAt: row.lastSeenAt.toISOString(),
  current,
});

export async function listOwnSessions(ctx: Context, caller: SessionCaller, paging: Paging) {
  const now = ctx.now();
  const page = await listActiveSessions(ctx.db, caller.userId, now, toIdleCutoff(now), paging);
  return mapPage(page, (row) => toSession(row, row.id === caller.sessionId));
}

export function endOtherSessions(ctx: Context, caller: SessionCaller, source: RequestSource) {
  return ctx.db.transaction().execute(async (tx) => {
    const ended = await endSessions(ctx, tx, caller.userId, { but: caller.sessionId });
    const details = { which: "others", ended };
    await recordAudit(ctx, tx, { actorId: caller.userId, action: "session.ended", source, details });
    return { ended };
  });
}

export async function endOwnSession(
  ctx: Context,
  caller: SessionCaller,
  sessionId: string,
  source: RequestSource,
) {
  const id = toUuid("ses", sessionId);
  if (!id) throw new ApiError("SESSION_NOT_FOUND");
  await ctx.db.transaction().execute(async (tx) => {
    const ended = await endSessions(ctx, tx, caller.userId, { only: id });
    if (ended === 0) throw new ApiError("SESSION_NOT_FOUND");
    const target = { type: "session", id: sessionId };
    await recordAudit(ctx, tx, { actorId: caller.userId, action: "session.ended", target, source });
  });
  const cookies = id === caller.sessionId ? [clearedSessionCookie] : [];
  return new DataResponse({ id: sessionId, ended: true as const }, { cookies });
}
