import type { DataOf } from "../../accounts/notifications/kinds.ts";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { Email } from "../../platform/email/render-email.ts";

export interface SecretChange {
  action:
    | "webhook.created"
    | "webhook.moved"
    | "webhook.removed"
    | "webhook.secret_rotated"
    | "callback_secret.rotated";
  target?: { type: "webhook"; id: string };
  details?: Record<string, unknown>;
}

/** Audits a change of who receives the account's events or which secret signs them, and notifies the owner. */
export async function recordSecretChange(
  ctx: Context,
  tx: Tx,
  { userId }: Pick<Member, "userId">,
  source: RequestSource,
  change: SecretChange,
  notification?: { data: DataOf<"webhook.changed">; message: Email },
): Promise<void> {
  await recordAudit(ctx, tx, { actorId: userId, source, ...change });
  if (!notification) return;
  const { data, message } = notification;
  const subjectId = change.target?.id ?? toUserId(userId);
  const occurrence = ctx.newId();
  await notifyAccount(ctx, tx, { userId, kind: "webhook.changed", subjectId, data, occurrence }, message);
}
