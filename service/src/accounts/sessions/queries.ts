import type { Plan, Quota, Role } from "@stoa/contract";
import { sql } from "kysely";
import type { Context } from "../../core/context.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface SessionRow {
  id: string;
  userId: string;
  role: Role;
  plan: Plan;
  quota: Quota[] | null;
  secondFactor: boolean;
  createdAt: Date;
  lastSeenAt: Date;
  expiresAt: Date;
  /** null: the session views no other account. */
  viewedId: string | null;
  viewedRole: Role;
  viewedPlan: Plan;
  viewedQuota: Quota[] | null;
  viewExpiresAt: Date;
  /** Whether this administrator may still view this account. */
  mayView: boolean;
}

/** Runs often, hence a named statement. */
const FIND_SESSION = {
  name: "find_session",
  text: `select s.id, s.user_id as "userId", u.role, u.plan, u.quota, s.second_factor as "secondFactor",
                s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.expires_at as "expiresAt",
                v.user_id as "viewedId", v.expires_at as "viewExpiresAt", t.role as "viewedRole",
                t.plan as "viewedPlan", t.quota as "viewedQuota",
                u.role = 'admin' and s.second_factor and t.role <> 'admin' and t.closed_at is null as "mayView"
           from sessions s join users u on u.id = s.user_id
           left join account_views v on v.session_id = s.id
           left join users t on t.id = v.user_id
          where s.id = $1 and s.ended_at is null and s.expires_at > $2 and s.last_seen_at > $3
            and u.banned_at is null and u.closed_at is null`,
};

export async function findActiveSession({ pool }: Context, id: string, now: Date, seenAfter: Date) {
  const { rows } = await pool.query<SessionRow>({ ...FIND_SESSION, values: [id, now, seenAfter] });
  return rows[0];
}

export interface NewSession {
  id: string;
  userId: string;
  secondFactor: boolean;
  via: string;
  ip: string;
  userAgent: string | null;
  createdAt: Date;
  lastSeenAt: Date;
  expiresAt: Date;
}

/** Sessions are stored for some weeks after their end. */
export async function compareBrowsers(db: Queries, userId: string, userAgent: string | null) {
  const { rows } = await sql<{ hasSessions: boolean; isKnown: boolean }>`
    select count(*) > 0 as "hasSessions", coalesce(bool_or(user_agent is not distinct from ${userAgent}), false) as "isKnown"
      from sessions where user_id = ${userId}`.execute(db);
  return firstOf(rows);
}

export const insertSession = (db: Queries, session: NewSession) =>
  db.insertInto("sessions").values(session).execute();

export const findSessionNotEnded = (db: Queries, id: string) =>
  db.selectFrom("sessions").select("id").where("id", "=", id).where("endedAt", "is", null).executeTakeFirst();

export const updateLastSeen = ({ db }: Context, id: string, now: Date, before: Date) =>
  db
    .updateTable("sessions")
    .set({ lastSeenAt: now })
    .where("id", "=", id)
    .where("lastSeenAt", "<", before)
    .execute();

/** All sessions of an account, or those that match every field. */
export interface SessionSelection {
  only?: string;
  but?: string;
  /** How the person signed in. */
  via?: string;
}

export const endSessionsOfUser = (db: Queries, userId: string, now: Date, which: SessionSelection) => {
  let live = db
    .updateTable("sessions")
    .set({ endedAt: now })
    .where("userId", "=", userId)
    .where("endedAt", "is", null);
  if (which.only !== undefined) live = live.where("id", "=", which.only);
  if (which.via !== undefined) live = live.where("via", "=", which.via);
  if (which.but !== undefined) live = live.where("id", "!=", which.but);
  return live.returning("id").execute();
};

export const endOldestSessions = (db: Queries, userId: string, maxSessions: number, now: Date) =>
  db
    .updateTable("sessions")
    .set({ endedAt: now })
    .where("id", "in", (select) =>
      select
        .selectFrom("sessions")
        .select("id")
        .where("userId", "=", userId)
        .where("endedAt", "is", null)
        .orderBy("id", "desc")
        .offset(maxSessions),
    )
    .execute();

export const deleteSessionsEndedBefore = (db: Queries, moment: Date) =>
  db
    .deleteFrom("sessions")
    .where((row) => row(row.fn.coalesce("endedAt", "expiresAt"), "<", moment))
    .execute();

/** Of one session, or of all sessions of the account. */
export const setSecondFactor = (db: Queries, userId: string, secondFactor: boolean, only?: string) => {
  const all = db.updateTable("sessions").set({ secondFactor }).where("userId", "=", userId);
  return (only === undefined ? all : all.where("id", "=", only)).execute();
};

export type OwnSessionRow = Omit<NewSession, "userId" | "expiresAt">;

export async function listActiveSessions(
  db: Queries,
  userId: string,
  now: Date,
  seenAfter: Date,
  paging: Paging,
): Promise<Page<OwnSessionRow>> {
  const live = db
    .selectFrom("sessions")
    .where("userId", "=", userId)
    .where("endedAt", "is", null)
    .where("expiresAt", ">", now)
    .where("lastSeenAt", ">", seenAfter);
  const items = await live
    .select(["id", "via", "secondFactor", "ip", "userAgent", "createdAt", "lastSeenAt"])
    .orderBy("id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await live
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export async function deleteSessionsOfUser(db: Queries, userId: string): Promise<void> {
  await db.deleteFrom("accountViews").where("userId", "=", userId).execute();
  await db.deleteFrom("sessions").where("userId", "=", userId).execute();
}

interface NewView {
  sessionId: string;
  userId: string;
  startedAt: Date;
  expiresAt: Date;
}

/** Returns false if the session has a view, also one that is over. */
export async function insertView(db: Queries, view: NewView): Promise<boolean> {
  const inserted = await db
    .insertInto("accountViews")
    .values(view)
    .onConflict((conflict) => conflict.doNothing())
    .returning("sessionId")
    .execute();
  return inserted.length > 0;
}

export const deleteView = (db: Queries, sessionId: string) =>
  db.deleteFrom("accountViews").where("sessionId", "=", sessionId).returning("userId").executeTakeFirst();
