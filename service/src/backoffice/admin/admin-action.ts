import { type AccountRow, lockAccount, mustNotBeLastAdmin } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";

export interface AdminActor {
  caller: SessionCaller;
  source: RequestSource;
}

export function mustNotBeSelf({ caller }: AdminActor, id: string): void {
  if (id !== caller.userId) return;
  throw ruleViolation("userId", "is your own account: another administrator must do this");
}

/** Locks all administrators first, then the account, so that two administrators can neither demote each other nor deadlock. */
export async function lockOpenAccount(
  tx: Tx,
  id: string,
  { unmakesAdmin }: { unmakesAdmin: boolean },
): Promise<AccountRow> {
  if (unmakesAdmin) await mustNotBeLastAdmin(tx, id);
  const user = await lockAccount(tx, id);
  if (!user) throw new ApiError("USER_NOT_FOUND");
  if (user.closedAt) throw new ApiError("INVALID_STATE", "The account is closed.", { current: "closed" });
  return user;
}

export const auditAdminAction = (
  ctx: Context,
  tx: Tx,
  { caller, source }: AdminActor,
  entry: { action: string; userId: string; details: Record<string, unknown> },
) =>
  recordAudit(ctx, tx, {
    actorId: caller.userId,
    action: entry.action,
    target: { type: "user", id: toUserId(entry.userId) },
    source,
    details: entry.details,
  });
