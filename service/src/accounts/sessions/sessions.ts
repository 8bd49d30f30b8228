import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { DAY_MS } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import type { Queries } from "../../platform/db/database.ts";
import { notifyAccount } from "../notifications/notify-account.ts";
import {
  compareBrowsers,
  deleteSessionsEndedBefore,
  deleteSessionsOfUser,
  deleteView,
  endOldestSessions,
  endSessionsOfUser,
  findActiveSession,
  findSessionNotEnded,
  insertSession,
  insertView,
  type SessionRow,
  type SessionSelection,
  setSecondFactor,
  updateLastSeen,
} from "./queries.ts";
import { readSessionToken, SESSION_SECONDS, signSessionToken } from "./session-token.ts";

const IDLE_MS = 14 * DAY_MS;
const RETENTION_MS = 30 * DAY_MS;
/** Sessions that were last seen before this are expired. */
export const toIdleCutoff = (now: Date) => new Date(now.getTime() - IDLE_MS);
const LAST_SEEN_INTERVAL_MS = 5 * 60_000;
const MAX_SESSIONS_PER_ACCOUNT = 20;

export interface StartSessionInput {
  user: { id: string; email: string; name: string };
  /** `magic-link`, `password`, `github`, `google` or `operator`. */
  via: string;
  secondFactor: boolean;
  source: RequestSource;
}

/** Always a new id. Over the limit, the oldest session ends. Returns the token. */
export async function startSession(ctx: Context, db: Queries, input: StartSessionInput): Promise<string> {
  const now = ctx.now();
  const id = ctx.newId();
  const isNewBrowser = input.via !== "operator" && (await isUnknownBrowser(db, input));
  await insertSession(db, {
    id,
    userId: input.user.id,
    secondFactor: input.secondFactor,
    via: input.via,
    ip: input.source.ip,
    userAgent: input.source.userAgent,
    createdAt: now,
    lastSeenAt: now,
    expiresAt: new Date(now.getTime() + SESSION_SECONDS * 1000),
  });
  if (isNewBrowser) await notifyOfSession(ctx, db, id, input);
  await endOldestSessions(db, input.user.id, MAX_SESSIONS_PER_ACCOUNT, now);
  const { email, name } = input.user;
  return signSessionToken(ctx, { sessionId: id, userId: input.user.id, email, name, createdAt: now });
}

/** The first sign-in of an account is no news, and neither is one by a browser that it used in the last weeks. */
const isUnknownBrowser = async (db: Queries, { user, source }: StartSessionInput): Promise<boolean> => {
  const { hasSessions, isKnown } = await compareBrowsers(db, user.id, source.userAgent);
  return hasSessions && !isKnown;
};

const notifyOfSession = (ctx: Context, db: Queries, id: string, { user, via, source }: StartSessionInput) =>
  notifyAccount(ctx, db, {
    userId: user.id,
    kind: "session.created",
    subjectId: toId("ses", id),
    data: { via, ip: source.ip, userAgent: source.userAgent },
  });

/** null: the token is invalid, the session ended or idle too long, or the account may not sign in. */
export async function authenticateSession(ctx: Context, token: string): Promise<SessionCaller | null> {
  const id = await readSessionToken(ctx, token);
  const session = id && (await findActiveSessionNow(ctx, id));
  return session ? toCaller(useSession(ctx, session)) : null;
}

/**
 * For the API: from the cache, and the caller may view another account. Pages outside of it, such as the consent of an
 * OAuth application, write when they are read, so they always act as the administrator, and read the row.
 */
export async function authenticateApiSession(ctx: Context, token: string): Promise<SessionCaller | null> {
  const id = await readSessionToken(ctx, token);
  const session = id && (await findCachedSession(ctx, id));
  return session ? withView(ctx, useSession(ctx, session)) : null;
}

/** Another process may have prolonged a session whose cached row is idle. */
async function findCachedSession(ctx: Context, id: string): Promise<SessionRow | undefined> {
  const session = await ctx.sessionCache.find(id, () => findActiveSessionNow(ctx, id));
  const now = ctx.now();
  if (!session || session.expiresAt <= now) return undefined;
  return session.lastSeenAt > toIdleCutoff(now) ? session : findActiveSessionNow(ctx, id);
}

function findActiveSessionNow(ctx: Context, id: string): Promise<SessionRow | undefined> {
  const now = ctx.now();
  return findActiveSession(ctx, id, now, toIdleCutoff(now));
}

const toCaller = (session: SessionRow): SessionCaller => ({
  kind: "session",
  sessionId: session.id,
  userId: session.userId,
  role: session.role,
  plan: session.plan,
  quota: session.quota,
  secondFactor: session.secondFactor,
  authenticatedAt: session.createdAt,
});

/** A view that is over leaves the session read-only: its open pages still show the other account. */
function withView(ctx: Context, session: SessionRow): SessionCaller {
  const administrator = toCaller(session);
  const { viewedId, viewExpiresAt: expiresAt } = session;
  if (viewedId === null) return administrator;
  const view = { administrator, viewedId, expiresAt };
  if (!session.mayView || expiresAt <= ctx.now())
    return { ...administrator, view: { ...view, isOver: true } };
  return {
    ...administrator,
    userId: viewedId,
    role: session.viewedRole,
    plan: session.viewedPlan,
    quota: session.viewedQuota,
    secondFactor: false,
    view: { ...view, isOver: false },
  };
}

/** Records the use at most every five minutes, and the request does not wait for it. */
function useSession(ctx: Context, session: SessionRow): SessionRow {
  const now = ctx.now();
  const before = new Date(now.getTime() - LAST_SEEN_INTERVAL_MS);
  if (session.lastSeenAt > before) return session;
  // In the cached row, too, so that the next request does not write.
  session.lastSeenAt = now;
  updateLastSeen(ctx, session.id, now, before).catch((error) =>
    ctx.log.warn({ err: error }, "the last use of a session was not stored"),
  );
  return session;
}

/** Ends all sessions of an account, or those selected. Returns the number of ended sessions. */
export async function endSessions(
  ctx: Context,
  db: Queries,
  userId: string,
  which: SessionSelection = {},
): Promise<number> {
  return (await endSessionsOfUser(db, userId, ctx.now(), which)).length;
}

/** Throws when the session ended since the request came in. Call it under a lock that ending a session takes, too. */
export async function mustBeActiveSession(tx: Queries, { sessionId }: SessionCaller): Promise<void> {
  if (!(await findSessionNotEnded(tx, sessionId))) throw new ApiError("INVALID_API_KEY");
}

export async function deleteOldSessions(ctx: Context): Promise<void> {
  await deleteSessionsEndedBefore(ctx.db, new Date(ctx.now().getTime() - RETENTION_MS));
}

/** A code was just entered in this session. */
export const markSecondFactor = (db: Queries, { sessionId, userId }: SessionCaller) =>
  setSecondFactor(db, userId, true, sessionId);

/** Returns false if the session has a view, also one that is over. */
export function startView(
  ctx: Context,
  tx: Queries,
  { sessionId }: SessionCaller,
  view: { userId: string; expiresAt: Date },
): Promise<boolean> {
  return insertView(tx, { sessionId, startedAt: ctx.now(), ...view });
}

/** Returns the viewed account; undefined if the session has no view. */
export const endView = async (tx: Queries, { sessionId }: SessionCaller): Promise<string | undefined> =>
  (await deleteView(tx, sessionId))?.userId;

/** The account's second factor was removed. */
export const clearSecondFactor = (db: Queries, userId: string) => setSecondFactor(db, userId, false);
/** On account closed: sessions are personal data. */
export const deleteSessions = (db: Queries, userId: string) => deleteSessionsOfUser(db, userId);
