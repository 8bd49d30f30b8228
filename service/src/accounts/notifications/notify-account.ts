import { type NotificationKind, notificationEmails } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import type { Email } from "../../platform/email/render-email.ts";
import { cleanData, type Data, type DataOf } from "./kinds.ts";
import { findRecipient, insertNotification, upsertNewestNotifications } from "./queries.ts";

export interface NewNotification<K extends NotificationKind> {
  userId: string;
  kind: K;
  /** The public id of the resource. */
  subjectId: string;
  data: DataOf<K>;
  /** The account whose name the title has. */
  actorId?: string;
  /**
   * Tells repeated notifications of this kind about this subject apart; by default there is one.
   */
  occurrence?: string;
}

/**
 * Inserts a notification in the transaction of the change, once, and queues its email unless the account switched
 * that off. A closed account gets neither.
 */
export async function notifyAccount<K extends NotificationKind>(
  ctx: Context,
  tx: Queries,
  { userId, kind, subjectId, data, actorId, occurrence = "" }: NewNotification<K>,
  email?: Email,
): Promise<void> {
  const row = { id: ctx.newId(), userId, kind, subjectId, occurrence, createdAt: ctx.now() };
  const isNew = await insertNotification(tx, {
    ...row,
    actorId: actorId ?? null,
    data: cleanData(data as Data),
  });
  if (!isNew || !email) return;
  const recipient = await findRecipient(tx, userId, kind);
  const isWanted = !isEmailOptional(kind) || (recipient?.choice ?? true);
  if (recipient && isWanted) await queueEmail(ctx, tx, recipient.address, email);
}

/**
 * Notifies a batch of accounts about the newest state of a subject. `order` sorts the states: a repeated or late batch
 * never replaces a newer notification.
 */
export const notifyAccounts = <K extends NotificationKind>(
  ctx: Context,
  userIds: readonly string[],
  {
    kind,
    subjectId,
    data,
    order,
  }: Pick<NewNotification<K>, "kind" | "subjectId" | "data"> & { order: string },
) =>
  upsertNewestNotifications(
    ctx.db,
    userIds.map((userId) => ({ id: ctx.newId(), userId })),
    { kind, subjectId, occurrence: "", data: cleanData(data as Data), createdAt: ctx.now(), order },
  );

/** Whether the account may switch the email of the kind off. */
export const isEmailOptional = (kind: NotificationKind) => notificationEmails[kind] === "optional";
