import { isDeepStrictEqual } from "node:util";
import type { UpdateUser } from "@stoa/contract";
import { type AccountRow, findAccount, updateAccount } from "../../accounts/people/accounts.ts";
import { updateAuthorOnProducts } from "../../catalog/products/author-listings.ts";
import { cancelOpenPayment, hasOpenPayment } from "../../commerce/plans/plan-payment.ts";
import { changePlan } from "../../commerce/plans/subscription.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { type AdminActor, auditAdminAction, lockOpenAccount, mustNotBeSelf } from "./admin-action.ts";
import { parseUserId, readUser, toUserEtag } from "./users.ts";

const FIELDS = ["role", "plan", "quota", "verified"] as const;
type AdminFields = Pick<AccountRow, (typeof FIELDS)[number]>;

/** The changed fields with their old and new values. */
function findDifferences(user: AccountRow, change: UpdateUser) {
  const differing = FIELDS.filter(
    (field) => change[field] !== undefined && !isDeepStrictEqual(change[field], user[field]),
  );
  const changedFields = (from: object) =>
    Object.fromEntries(differing.map((field) => [field, from[field as never]])) as Partial<AdminFields>;
  return { from: changedFields(user), to: changedFields(change) };
}

async function applyChange(ctx: Context, tx: Tx, user: AccountRow, to: Partial<AdminFields>) {
  const { id } = user;
  const { role, plan, quota, verified } = to;
  if (role) await updateAccount(tx, id, { role });
  if (quota !== undefined) await updateAccount(tx, id, { quota: quota && JSON.stringify(quota) });
  if (plan) await changePlan(ctx, tx, id, plan);
  if (verified === undefined) return;
  await updateAccount(tx, id, { verified });
  await updateAuthorOnProducts(tx, { ...user, verified });
}

/** Otherwise a pending payment would later replace the plan that the administrator sets. */
async function cancelSupersededPayment(ctx: Context, id: string, plan: UpdateUser["plan"]): Promise<void> {
  const user = plan && (await findAccount(ctx.db, id));
  if (user && user.plan !== plan) await cancelOpenPayment(ctx, id);
}

async function mustHaveNoOpenPayment(tx: Tx, id: string): Promise<void> {
  if (!(await hasOpenPayment(tx, id))) return;
  const why = "It is not known yet whether the account has just paid for a plan: try again in a minute.";
  throw new ApiError("INVALID_STATE", why, { current: "money_open" });
}

/** Administrators cannot demote themselves, and one administrator must remain. */
export async function changeUser(
  ctx: Context,
  actor: AdminActor,
  userId: string,
  change: UpdateUser,
  ifMatch: string | null,
) {
  const id = parseUserId(userId);
  const unmakesAdmin = change.role !== undefined && change.role !== "admin";
  if (unmakesAdmin) mustNotBeSelf(actor, id);
  await cancelSupersededPayment(ctx, id, change.plan);
  await ctx.db.transaction().execute(async (tx) => {
    const user = await lockOpenAccount(tx, id, { unmakesAdmin });
    mustMatch(ifMatch, await toUserEtag(ctx, tx, user));
    const { from, to } = findDifferences(user, change);
    if (Object.keys(to).length === 0) return;
    if (to.plan) await mustHaveNoOpenPayment(tx, id);
    await applyChange(ctx, tx, user, to);
    const details = { from, to, ...(change.reason && { reason: change.reason }) };
    await auditAdminAction(ctx, tx, actor, { action: "user.changed", userId: id, details });
  });
  return readUser(ctx, userId);
}
