import type { NotificationKind } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export interface NewNotificationRow {
  id: string;
  userId: string;
  kind: NotificationKind;
  subjectId: string;
  occurrence: string;
  actorId: string | null;
  data: Record<string, string | null>;
  createdAt: Date;
}

/** Returns false for a notification that exists, and for a closed account. */
export async function insertNotification(db: Queries, row: NewNotificationRow): Promise<boolean> {
  const { rows } = await sql`
    insert into notifications (id, user_id, kind, subject_id, occurrence, actor_id, data, created_at)
    select ${row.id}, u.id, ${row.kind}, ${row.subjectId}, ${row.occurrence},
           (select a.id from users a where a.id = ${row.actorId}::uuid and a.closed_at is null),
           ${JSON.stringify(row.data)}::jsonb, ${row.createdAt}
      from users u where u.id = ${row.userId} and u.closed_at is null
        on conflict do nothing returning id`.execute(db);
  return rows.length > 0;
}

export type SharedNotification = Omit<NewNotificationRow, "id" | "userId" | "actorId">;

/**
 * One notification for each user of the batch. A newer `occurrence` replaces the notification about the subject, and becomes unread;
 * an older one changes nothing.
 */
export const upsertNewestNotifications = (
  db: Queries,
  recipients: readonly { id: string; userId: string }[],
  row: SharedNotification & { order: string },
) =>
  sql`
    insert into notifications as n (id, user_id, kind, subject_id, occurrence, data, created_at)
    select r.id, u.id, ${row.kind}, ${row.subjectId}, ${row.occurrence},
           ${JSON.stringify({ ...row.data, order: row.order })}::jsonb, ${row.createdAt}
      from jsonb_to_recordset(${JSON.stringify(recipients)}) as r (id uuid, "userId" uuid)
      join users u on u.id = r."userId" and u.closed_at is null
        on conflict (user_id, kind, subject_id, occurrence) do update
       set id = excluded.id, data = excluded.data, created_at = excluded.created_at, read_at = null
     where n.data->>'order' < excluded.data->>'order'`.execute(db);

export interface NotificationRow {
  id: string;
  kind: NotificationKind;
  subjectId: string;
  actorName: string | null;
  data: Record<string, string | null>;
  createdAt: Date;
  readAt: Date | null;
}

const ownNotifications = (db: Queries, userId: string, unread: boolean) => {
  const own = db.selectFrom("notifications as n").where("n.userId", "=", userId);
  return unread ? own.where("n.readAt", "is", null) : own;
};

export async function listNotifications(
  db: Queries,
  userId: string,
  { unread, ...paging }: Paging & { unread: boolean },
): Promise<Page<NotificationRow>> {
  const items = await ownNotifications(db, userId, unread)
    .leftJoin("users as a", "a.id", "n.actorId")
    .select(["n.id", "n.kind", "n.subjectId", "a.name as actorName", "n.data", "n.createdAt", "n.readAt"])
    .orderBy("n.id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .$castTo<NotificationRow>()
    .execute();
  return { items, ...(await countRows(db, ownNotifications(db, userId, unread).select("n.id"))) };
}

export const countUnread = async (db: Queries, userId: string): Promise<number> =>
  (await countRows(db, ownNotifications(db, userId, true).select("n.id"))).total;

export const markReadByIds = (db: Queries, userId: string, ids: string[], now: Date) =>
  db
    .updateTable("notifications")
    .set({ readAt: now })
    .where("userId", "=", userId)
    .where("id", "in", ids)
    .where("readAt", "is", null)
    .execute();

/** Returns how many it marked. */
export async function markReadBefore(
  db: Queries,
  userId: string,
  before: Date,
  limit: number,
  now: Date,
): Promise<number> {
  const unread = ownNotifications(db, userId, true)
    .select("n.id")
    .where("n.createdAt", "<=", before)
    .orderBy("n.id")
    .limit(limit);
  const { numUpdatedRows } = await db
    .updateTable("notifications")
    .set({ readAt: now })
    .where("id", "in", unread)
    .where("readAt", "is", null)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

export async function deleteNotificationsBefore(db: Queries, id: string, limit: number): Promise<number> {
  const old = db.selectFrom("notifications").select("id").where("id", "<", id).orderBy("id").limit(limit);
  const { numDeletedRows } = await db.deleteFrom("notifications").where("id", "in", old).executeTakeFirst();
  return Number(numDeletedRows);
}

/** Of accounts that were closed since: a notification that was written during the closing stayed. */
export const deleteNotificationsOfClosedAccounts = (db: Queries, since: Date) =>
  db
    .deleteFrom("notifications")
    .where("userId", "in", (users) => users.selectFrom("users").select("id").where("closedAt", ">=", since))
    .execute();

/** Other accounts' notifications stay, without the name. */
export async function deleteNotificationsOfUser(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom("notifications").where("userId", "=", userId).execute();
  await tx.deleteFrom("notificationPreferences").where("userId", "=", userId).execute();
  await tx.updateTable("notifications").set({ actorId: null }).where("actorId", "=", userId).execute();
}

/** undefined: the account is closed. */
export const findRecipient = (db: Queries, userId: string, kind: NotificationKind) =>
  db
    .selectFrom("users as u")
    .leftJoin("notificationPreferences as p", (join) =>
      join.onRef("p.userId", "=", "u.id").on("p.kind", "=", kind),
    )
    .select(["u.email as address", "p.email as choice"])
    .where("u.id", "=", userId)
    .where("u.closedAt", "is", null)
    .executeTakeFirst();

export const listPreferences = (db: Queries, userId: string) =>
  db.selectFrom("notificationPreferences").select(["kind", "email"]).where("userId", "=", userId).execute();

export const upsertPreference = (tx: Tx, preference: { userId: string; kind: string; email: boolean }) =>
  tx
    .insertInto("notificationPreferences")
    .values(preference)
    .onConflict((conflict) => conflict.columns(["userId", "kind"]).doUpdateSet({ email: preference.email }))
    .execute();
