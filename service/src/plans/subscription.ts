import type { Plan } from "@stoa/contract";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { announce } from "../events/outbox.ts";
import { roundHalfUp } from "../money/amount.ts";
import { lockPlan, setPlan, toUserId } from "../people/users.ts";
import { priceMinorOf } from "./plan-book.ts";
import {
  changeSubscriptionRow,
  deleteSubscription,
  findSubscription,
  listDueDowngrades,
  replaceSubscription,
  type SubscriptionRow,
} from "./queries.ts";

/** Moves an account to a plan, for its callers at once, and tells the account so; an account that has it stays untold. */
export async function changePlan(ctx: Context, tx: Tx, userId: string, plan: Plan): Promise<void> {
  const oldPlan = await lockPlan(tx, userId);
  if (oldPlan === plan) return;
  await setPlan(tx, userId, plan);
  await announce(ctx, tx, [userId], "user.subscription.updated", {
    subscription: {
      userId: toUserId(userId),
      oldPlan,
      newPlan: plan,
      effectiveDate: ctx.now().toISOString(),
    },
  });
}

export interface Bought {
  userId: string;
  plan: Plan;
  priceMinor: bigint;
  currency: string;
  paymentMethodId: string;
}

/** The plan holds from now on, for a month that is paid. */
export async function startPeriod(ctx: Context, tx: Tx, bought: Bought): Promise<void> {
  const now = ctx.now();
  await replaceSubscription(tx, {
    user_id: bought.userId,
    plan: bought.plan,
    price_minor: bought.priceMinor,
    currency: bought.currency,
    payment_method_id: bought.paymentMethodId,
    period_start: now,
    period_end: monthAfter(now),
  });
  await changePlan(ctx, tx, bought.userId, bought.plan);
}

/** The plan holds from now on, and costs nothing. */
export async function endSubscription(ctx: Context, tx: Tx, userId: string, plan: Plan): Promise<void> {
  await deleteSubscription(tx, userId);
  await changePlan(ctx, tx, userId, plan);
}

export const isPaid = (subscription: SubscriptionRow | undefined, now: Date) =>
  subscription !== undefined && subscription.periodEnd > now;

/** What is unused of the paid period, by time, in the currency that a new one is paid in. */
export function creditMinor(subscription: SubscriptionRow | undefined, currency: string, now: Date): bigint {
  if (!subscription || !isPaid(subscription, now) || subscription.currency !== currency) return 0n;
  const { priceMinor, periodStart, periodEnd } = subscription;
  const unused = priceMinor * BigInt(periodEnd.getTime() - now.getTime());
  return roundHalfUp(unused, BigInt(periodEnd.getTime() - periodStart.getTime()));
}

/** The same day of the next month; where that has no such day, its last one. */
function monthAfter(date: Date): Date {
  const next = new Date(date);
  next.setUTCMonth(next.getUTCMonth() + 1);
  if (next.getUTCDate() !== date.getUTCDate()) next.setUTCDate(0);
  return next;
}

/** Applies the downgrades whose period has ended. */
export async function applyDueDowngrades(ctx: Context): Promise<void> {
  for (const { userId } of await listDueDowngrades(ctx.db, ctx.now())) await downgrade(ctx, userId);
}

/** Looked at again under the account's lock: of two workers one finds it due, and a late change of mind counts. */
const downgrade = (ctx: Context, userId: string) =>
  ctx.db.transaction().execute(async (tx) => {
    await lockPlan(tx, userId);
    const subscription = await findSubscription(tx, userId);
    if (!subscription?.nextPlan || isPaid(subscription, ctx.now())) return;
    const { nextPlan } = subscription;
    if (priceMinorOf(ctx.config.planBook, nextPlan) === 0n) return endSubscription(ctx, tx, userId, nextPlan);
    // Its period has ended as that of every plan which goes on: the renewal asks the new plan's price.
    await changeSubscriptionRow(tx, userId, { plan: nextPlan, next_plan: null });
    await changePlan(ctx, tx, userId, nextPlan);
  });
