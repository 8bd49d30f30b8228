import { type MarkNotificationsRead, NOTIFICATION_RETENTION_DAYS, type Notification } from "@stoa/contract";
import type { Context, Member } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { invalidRequest } from "../../core/errors.ts";
import { minUuidAt, toId, toUuid } from "../../core/ids.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, type Page, type Paging } from "../../platform/db/paging.ts";
import { renderNotification } from "./kinds.ts";
import {
  countUnread,
  deleteNotificationsBefore,
  deleteNotificationsOfClosedAccounts,
  deleteNotificationsOfUser,
  listNotifications,
  markReadBefore,
  markReadByIds,
  type NotificationRow,
} from "./queries.ts";

const BATCH_SIZE = 5_000;

export async function listOwnNotifications(
  ctx: Context,
  { userId }: Member,
  query: Paging & { unread: boolean },
): Promise<Page<Notification>> {
  const page = await listNotifications(ctx.db, userId, query);
  const unreadCount = query.unread ? page.total : await countUnread(ctx.db, userId);
  return { ...mapPage(page, toNotification), unreadCount };
}

const toNotification = ({ id, kind, subjectId, actorName, data, ...row }: NotificationRow): Notification => ({
  id: toId("ntf", id),
  kind,
  ...renderNotification({ kind, subjectId, actorName, data }),
  readAt: row.readAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString(),
});

/** Repeatable. */
export async function markRead(ctx: Context, { userId }: Member, { ids, before }: MarkNotificationsRead) {
  if ((ids === undefined) === (before === undefined))
    throw invalidRequest(ids ? "before" : "ids", "send either ids or before");
  if (ids) await markListRead(ctx, userId, ids);
  if (before) await markAllRead(ctx, userId, new Date(before));
  return { unreadCount: await countUnread(ctx.db, userId) };
}

async function markListRead(ctx: Context, userId: string, ids: string[]): Promise<void> {
  const uuids = ids.flatMap((id) => toUuid("ntf", id) ?? []);
  if (uuids.length > 0) await markReadByIds(ctx.db, userId, uuids, ctx.now());
}

/** In batches, so that no statement takes long. */
async function markAllRead(ctx: Context, userId: string, before: Date): Promise<void> {
  let marked: number;
  do marked = await markReadBefore(ctx.db, userId, before, BATCH_SIZE, ctx.now());
  while (marked === BATCH_SIZE);
}

export const deleteNotifications = (tx: Tx, userId: string) => deleteNotificationsOfUser(tx, userId);

export async function deleteOldNotifications(ctx: Context): Promise<void> {
  await deleteNotificationsOfClosedAccounts(ctx.db, daysAfter(ctx.now(), -1));
  const before = minUuidAt(daysAfter(ctx.now(), -NOTIFICATION_RETENTION_DAYS));
  while ((await deleteNotificationsBefore(ctx.db, before, BATCH_SIZE)) > 0);
}
