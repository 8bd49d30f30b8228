import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { DAY_MS } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import type { Queries } from "../../platform/db/database.ts";
import {
  deleteSessionsOf,
  deleteSessionsOverBefore,
  endOldestSessions,
  endSessionsOf,
  findLiveSession,
  findUnended,
  insertSession,
  type SessionRow,
  setSecondFactor,
  touchSession,
} from "./queries.ts";
import { readSessionToken, SESSION_SECONDS, signSessionToken } from "./token.ts";

const IDLE_MS = 14 * DAY_MS;
const KEPT_AFTER_END_MS = 30 * DAY_MS;
/** Sessions that were not seen since are over. */
export const idleSince = (now: Date) => new Date(now.getTime() - IDLE_MS);
const SEEN_EVERY_MS = 5 * 60_000;
const SESSIONS_PER_ACCOUNT = 20;

export interface StartSession {
  user: { id: string; email: string; name: string };
  /** How they came in: `magic-link`, `password`, `github`, `google`, `operator`. */
  via: string;
  secondFactor: boolean;
  source: RequestSource;
}

/** Starts a session, under a new id every time; answers its token. The oldest of too many ends. */
export async function startSession(ctx: Context, db: Queries, wish: StartSession): Promise<string> {
  const now = ctx.now();
  const id = ctx.newId();
  await insertSession(db, {
    id,
    user_id: wish.user.id,
    second_factor: wish.secondFactor,
    via: wish.via,
    ip: wish.source.ip,
    user_agent: wish.source.userAgent,
    created_at: now,
    last_seen_at: now,
    expires_at: new Date(now.getTime() + SESSION_SECONDS * 1000),
  });
  await endOldestSessions(db, wish.user.id, SESSIONS_PER_ACCOUNT, now);
  const { email, name } = wish.user;
  return signSessionToken(ctx, { sessionId: id, userId: wish.user.id, email, name, createdAt: now });
}

/** Whose session a token is; null when it is none, over, ended, idle too long, or of somebody who may not enter. */
export async function identifySession(ctx: Context, token: string): Promise<SessionCaller | null> {
  const id = await readSessionToken(ctx, token);
  if (!id) return null;
  const now = ctx.now();
  const session = await findLiveSession(ctx, id, now, idleSince(now));
  if (!session) return null;
  noteSeen(ctx, session);
  return {
    kind: "session",
    sessionId: session.id,
    userId: session.userId,
    role: session.role,
    plan: session.plan,
    quota: session.quota,
    secondFactor: session.secondFactor,
    authenticatedAt: session.createdAt,
  };
}

/** Written now and then, beside the request: nobody waits for it. */
function noteSeen(ctx: Context, session: SessionRow): void {
  const before = new Date(ctx.now().getTime() - SEEN_EVERY_MS);
  if (session.lastSeenAt > before) return;
  touchSession(ctx, session.id, ctx.now(), before).catch((error) =>
    ctx.log.warn({ err: error }, "the last use of a session was not kept"),
  );
}

/** Ends one session of the account, all, or all but one; answers how many were ended. */
export async function endSessions(
  ctx: Context,
  db: Queries,
  userId: string,
  which: { only?: string; but?: string } = {},
): Promise<number> {
  return (await endSessionsOf(db, userId, ctx.now(), which)).length;
}

/** Throws when the session was ended since the request came in: to be asked under a lock that whoever ends it takes, too. */
export async function mustStillBeIn(tx: Queries, { sessionId }: SessionCaller): Promise<void> {
  if (!(await findUnended(tx, sessionId))) throw new ApiError("INVALID_API_KEY");
}

/** Forgets sessions that were over a month ago. */
export async function forgetOldSessions(ctx: Context): Promise<void> {
  await deleteSessionsOverBefore(ctx.db, new Date(ctx.now().getTime() - KEPT_AFTER_END_MS));
}

/** From now on the session counts as entered with two factors: a code was just given in it. */
export const noteSecondFactor = (db: Queries, { sessionId, userId }: SessionCaller) =>
  setSecondFactor(db, userId, true, sessionId);

/** The account has no second factor any more: none of its sessions counts as entered with one. */
export const forgetSecondFactor = (db: Queries, userId: string) => setSecondFactor(db, userId, false);
/** Of an account that closes: where and when somebody signed in is theirs, and goes with them. */
export const forgetSessions = (db: Queries, userId: string) => deleteSessionsOf(db, userId);
