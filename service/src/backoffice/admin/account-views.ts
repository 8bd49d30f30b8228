import { ACCOUNT_VIEW_MINUTES, type AccountView, type StartAccountView } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { findAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { endView, startView } from "../../accounts/sessions/sessions.ts";
import { type Context, type Member, viewOf } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { required } from "../../core/required.ts";
import { type AdminActor, auditAdminAction, lockOpenAccount, mustNotBeSelf } from "./admin-action.ts";
import { parseUserId } from "./users.ts";

/** One view in a session: of parallel calls, the second is refused. */
export async function startAccountView(
  ctx: Context,
  actor: AdminActor,
  { userId, reason }: StartAccountView,
): Promise<AccountView> {
  const id = parseUserId(userId);
  mustNotBeSelf(actor, id);
  const expiresAt = new Date(ctx.now().getTime() + ACCOUNT_VIEW_MINUTES * 60_000);
  const user = await ctx.db.transaction().execute(async (tx) => {
    const viewed = await lockOpenAccount(tx, id, { unmakesAdmin: false });
    if (viewed.role === "admin") throw ruleViolation("userId", "is an administrator, who is never viewed");
    if (!(await startView(ctx, tx, actor.caller, { userId: id, expiresAt }))) throw alreadyViewing();
    const details = { reason, expiresAt: expiresAt.toISOString() };
    await auditAdminAction(ctx, tx, actor, { action: "user.viewed", userId: id, details });
    await notifyAccount(ctx, tx, {
      userId: id,
      kind: "account.viewed",
      subjectId: userId,
      data: { until: expiresAt.toUTCString() },
      occurrence: actor.caller.sessionId + ctx.now().toISOString(),
    });
    return viewed;
  });
  return { user: { id: userId, name: user.name }, expiresAt: expiresAt.toISOString(), isOver: false };
}

const alreadyViewing = () =>
  new ApiError("INVALID_STATE", "This session views an account already: end that view first.", {
    current: "viewing",
  });

/** Also ends a view that is over. Of parallel calls, one succeeds and is audited. */
export async function endAccountView(ctx: Context, { caller, source }: AdminActor) {
  const administrator = viewOf(caller)?.administrator ?? caller;
  await ctx.db.transaction().execute(async (tx) => {
    const viewedId = await endView(tx, administrator);
    if (viewedId === undefined)
      throw new ApiError("INVALID_STATE", "This session views no other account.", { current: "own_account" });
    const actor = { caller: administrator, source };
    await auditAdminAction(ctx, tx, actor, { action: "user.view_ended", userId: viewedId, details: {} });
  });
  return { ended: true as const };
}

/** null for a caller that acts as itself. */
export async function readView(ctx: Context, caller: Member): Promise<AccountView | null> {
  const view = viewOf(caller);
  if (!view) return null;
  const { name } = required(await findAccount(ctx.db, view.viewedId), "the viewed account");
  const { isOver } = view;
  return { user: { id: toUserId(view.viewedId), name }, expiresAt: view.expiresAt.toISOString(), isOver };
}
