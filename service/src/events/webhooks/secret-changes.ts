import { findAccount } from "../../accounts/people/accounts.ts";
import type { Context, Member, RequestSource } from "../../core/context.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
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

/** Audits a change of who receives the account's events or which secret signs them, and emails the owner. */
export async function recordSecretChange(
  ctx: Context,
  tx: Tx,
  { userId }: Pick<Member, "userId">,
  source: RequestSource,
  change: SecretChange,
  message?: Email,
): Promise<void> {
  await recordAudit(ctx, tx, { actorId: userId, source, ...change });
  const owner = message && (await findAccount(tx, userId));
  if (owner) await queueEmail(ctx, tx, owner.email, message);
}
