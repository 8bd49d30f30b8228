import type { Plan } from "@stoa/contract";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { announce } from "../events/outbox.ts";
import { findAccount, writeAccount } from "../people/accounts.ts";
import { toUserId } from "../people/users.ts";

/** Gives an account another plan from now on, and tells its owner. */
export async function changePlan(ctx: Context, tx: Tx, userId: string, plan: Plan): Promise<void> {
  const before = await findAccount(tx, userId);
  await writeAccount(tx, userId, { plan });
  await announce(ctx, tx, [userId], "user.subscription.updated", {
    subscription: {
      userId: toUserId(userId),
      oldPlan: before!.plan,
      newPlan: plan,
      effectiveDate: ctx.now().toISOString(),
    },
  });
}
