import { type AccountRow, findAccount, updateAccount } from "../../accounts/people/accounts.ts";
import { endSessions } from "../../accounts/sessions/sessions.ts";
import { relistProductsOfAuthor } from "../../catalog/products/author-listings.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { skipDeliveriesOfUser } from "../../events/webhooks/endpoints.ts";
import { cancelAllRuns } from "../../execution/workflow-runs/cancel-all-runs.ts";
import { retryOnDeadlock, type Tx } from "../../platform/db/database.ts";
import { type AdminActor, auditAdminAction, lockOpenAccount, mustNotBeSelf } from "./admin-action.ts";
import { parseUserId, readUser } from "./users.ts";

function mustHaveStatus(user: AccountRow, required: "active" | "banned"): void {
  const current = user.bannedAt ? "banned" : "active";
  if (current === required) return;
  throw new ApiError("INVALID_STATE", `The account is ${current}.`, { current, allowed: [required] });
}

/**
 * Takes effect at once, since each authentication reads the ban. Unlists the user's products, which buyers keep; stops
 * webhooks and running workflows.
 */
export async function banUser(ctx: Context, actor: AdminActor, userId: string, reason: string) {
  const id = parseUserId(userId);
  mustNotBeSelf(actor, id);
  const ban = async (tx: Tx) => {
    mustHaveStatus(await lockOpenAccount(tx, id, { unmakesAdmin: true }), "active");
    await updateAccount(tx, id, { bannedAt: ctx.now(), banReason: reason });
    await relistProductsOfAuthor(tx, id);
    await skipDeliveriesOfUser(ctx, tx, id);
    const endedSessions = await endSessions(ctx, tx, id);
    await cancelAllRuns(ctx, tx, id, "account_banned");
    const details = { reason, endedSessions };
    await auditAdminAction(ctx, tx, actor, { action: "user.banned", userId: id, details });
    await ctx.idempotencyKey?.bind(tx, userId);
  };
  // Runs in progress lock the same rows.
  await retryOnDeadlock(() => ctx.db.transaction().execute(ban));
  return readUser(ctx, userId);
}

export async function unbanUser(ctx: Context, actor: AdminActor, userId: string) {
  const id = parseUserId(userId);
  await ctx.db.transaction().execute(async (tx) => {
    const user = await lockOpenAccount(tx, id, { unmakesAdmin: false });
    mustHaveStatus(user, "banned");
    await updateAccount(tx, id, { bannedAt: null, banReason: null });
    await relistProductsOfAuthor(tx, id);
    // A session that started during the ban must not work after an unban.
    await endSessions(ctx, tx, id);
    const details = { reason: user.banReason };
    await auditAdminAction(ctx, tx, actor, { action: "user.unbanned", userId: id, details });
    await ctx.idempotencyKey?.bind(tx, userId);
  });
  return readUser(ctx, userId);
}

export async function endSessionsOfUser(ctx: Context, actor: AdminActor, userId: string) {
  const id = parseUserId(userId);
  return ctx.db.transaction().execute(async (tx) => {
    if (!(await findAccount(tx, id))) throw new ApiError("USER_NOT_FOUND");
    const ended = await endSessions(ctx, tx, id);
    await auditAdminAction(ctx, tx, actor, { action: "user.signed_out", userId: id, details: { ended } });
    await ctx.idempotencyKey?.bind(tx, JSON.stringify({ ended }));
    return { ended };
  });
}
