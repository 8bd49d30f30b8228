import type { Plan } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { lockPlan, setPlan, toUserId } from "../../accounts/people/users.ts";
import { planPriceMinor } from "../../core/config/plan-config.ts";
import type { Context } from "../../core/context.ts";
import { daysAfter, toLongDate } from "../../core/dates.ts";
import { formatMoneyWithSymbol, roundHalfUp } from "../../core/money/amount.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { Email } from "../../platform/email/render-email.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { confirmPaymentEmail, type DueMonth, planEndedEmail, renewalFailedEmail } from "./plan-emails.ts";
import {
  deleteSubscription,
  findSubscription,
  listDueDowngrades,
  type Period,
  replaceSubscription,
  type SubscriptionRow,
  updateSubscription,
} from "./queries.ts";

/** Applies the quotas at once and publishes an event, unless the plan is the same. */
export async function changePlan(ctx: Context, tx: Tx, userId: string, plan: Plan): Promise<void> {
  const oldPlan = await lockPlan(tx, userId);
  if (oldPlan === plan) return;
  await setPlan(tx, userId, plan);
  await publishEvent(ctx, tx, [userId], "user.subscription.updated", {
    subscription: {
      userId: toUserId(userId),
      oldPlan,
      newPlan: plan,
      effectiveDate: ctx.now().toISOString(),
    },
  });
  await notifyAccount(ctx, tx, {
    userId,
    kind: "plan.changed",
    subjectId: toUserId(userId),
    data: { from: oldPlan, to: plan },
    occurrence: ctx.newId(),
  });
}

export interface PaidPlan {
  userId: string;
  plan: Plan;
  priceMinor: bigint;
  currency: string;
  paymentMethodId: string;
}

export async function startPeriod(ctx: Context, tx: Tx, paidPlan: PaidPlan): Promise<Period> {
  const now = ctx.now();
  const period = await writePeriod(tx, paidPlan, now, now.getUTCDate());
  await changePlan(ctx, tx, paidPlan.userId, paidPlan.plan);
  return period;
}

/**
 * A month that passed without a payment is skipped: the paid month begins now. A gap also resets the anchor day, so that each price pays
 * for one month.
 */
export async function continuePeriod(
  ctx: Context,
  tx: Tx,
  paidPlan: PaidPlan,
  renewsFrom: Date,
): Promise<Period> {
  const subscription = await findSubscription(tx, paidPlan.userId);
  const continues = subscription !== undefined && subscription.periodEnd.getTime() === renewsFrom.getTime();
  const anchorDay = continues ? subscription.anchorDay : renewsFrom.getUTCDate();
  const now = ctx.now();
  if (monthAfter(renewsFrom, anchorDay) <= now) return writePeriod(tx, paidPlan, now, now.getUTCDate());
  return writePeriod(tx, paidPlan, renewsFrom, anchorDay);
}

async function writePeriod(tx: Tx, paidPlan: PaidPlan, start: Date, anchorDay: number): Promise<Period> {
  const end = monthAfter(start, anchorDay);
  await replaceSubscription(tx, {
    userId: paidPlan.userId,
    plan: paidPlan.plan,
    priceMinor: paidPlan.priceMinor,
    currency: paidPlan.currency,
    paymentMethodId: paidPlan.paymentMethodId,
    periodStart: start,
    periodEnd: end,
    anchorDay,
    nextTryAt: end,
  });
  return { start, end };
}

interface DueMonthOfUser extends DueMonth {
  userId: string;
}

/** Days from the first failed renewal to each further attempt; after the last one the plan ends. */
const RETRY_AFTER_DAYS = [3, 7];

/** Runs under the account's lock. A payment started by the owner does not count, because the owner saw its result. */
export async function recordFailedRenewal(
  ctx: Context,
  tx: Tx,
  due: DueMonthOfUser,
  declineCode: string | null = null,
): Promise<void> {
  const subscription = await findSubscription(tx, due.userId);
  if (!subscription || subscription.nextTryAt > ctx.now()) return;
  const days = RETRY_AFTER_DAYS[subscription.tries];
  if (days === undefined) {
    await endSubscription(ctx, tx, due.userId, "free");
    return notifyOfFailure(ctx, tx, due, null, planEndedEmail(due));
  }
  const previous = RETRY_AFTER_DAYS[subscription.tries - 1] ?? 0;
  const nextTry = daysAfter(ctx.now(), days - previous);
  await updateSubscription(tx, due.userId, { tries: subscription.tries + 1, nextTryAt: nextTry });
  await notifyOfFailure(ctx, tx, due, nextTry, renewalFailedEmail(due, nextTry, declineCode));
}

const toPlanData = ({ plan, amountMinor, currency }: DueMonth) => ({
  plan,
  amount: formatMoneyWithSymbol(amountMinor, currency),
});

/** `nextTry` is null when the plan ended. */
const notifyOfFailure = (
  ctx: Context,
  tx: Tx,
  due: DueMonthOfUser,
  nextTry: Date | null,
  message: Email,
): Promise<void> => {
  const notification = {
    userId: due.userId,
    kind: "plan.payment_failed" as const,
    subjectId: toUserId(due.userId),
    data: { ...toPlanData(due), nextTry: nextTry && toLongDate(nextTry) },
    occurrence: ctx.newId(),
  };
  return notifyAccount(ctx, tx, notification, message);
};

export async function emailConfirmation(
  ctx: Context,
  tx: Tx,
  due: DueMonthOfUser,
  url: string,
): Promise<void> {
  const notification = {
    userId: due.userId,
    kind: "plan.confirmation_required" as const,
    subjectId: toUserId(due.userId),
    data: toPlanData(due),
    occurrence: ctx.newId(),
  };
  await notifyAccount(ctx, tx, notification, confirmPaymentEmail(due, url));
}

/** For plans without a price. */
export async function endSubscription(ctx: Context, tx: Tx, userId: string, plan: Plan): Promise<void> {
  await deleteSubscription(tx, userId);
  await changePlan(ctx, tx, userId, plan);
}

export const isPeriodPaid = (subscription: SubscriptionRow | undefined, now: Date) =>
  subscription !== undefined && subscription.periodEnd > now;

/** In the currency of the new plan; 0 if that differs. */
export function unusedCredit(subscription: SubscriptionRow | undefined, currency: string, now: Date): bigint {
  if (!subscription || !isPeriodPaid(subscription, now) || subscription.currency !== currency) return 0n;
  const { priceMinor, periodStart, periodEnd } = subscription;
  const unused = priceMinor * BigInt(periodEnd.getTime() - now.getTime());
  return roundHalfUp(unused, BigInt(periodEnd.getTime() - periodStart.getTime()));
}

/** The same day and time of the next month; the last day if the month is shorter. */
export function monthAfter(date: Date, day: number): Date {
  const next = new Date(date);
  next.setUTCMonth(next.getUTCMonth() + 1, 1);
  const lastDay = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 0)).getUTCDate();
  next.setUTCDate(Math.min(day, lastDay));
  return next;
}

export const applyDueDowngrades = async (ctx: Context): Promise<void> =>
  forEachRow(
    await listDueDowngrades(ctx.db, ctx.now()),
    ({ userId }) => downgrade(ctx, userId),
    ({ userId }, err) =>
      ctx.log.error({ user: userId, err }, "a downgrade could not be applied; the next job run tries again"),
  );

/** Checks again under the account's lock: another worker or the owner may have changed the plan. */
const downgrade = (ctx: Context, userId: string) =>
  ctx.db.transaction().execute(async (tx) => {
    await lockPlan(tx, userId);
    const subscription = await findSubscription(tx, userId);
    if (!subscription?.nextPlan || isPeriodPaid(subscription, ctx.now())) return;
    const { nextPlan } = subscription;
    if (planPriceMinor(ctx.config.planConfig, nextPlan) === 0n)
      return endSubscription(ctx, tx, userId, nextPlan);
    // The renewal then charges the price of the new plan.
    await updateSubscription(tx, userId, { plan: nextPlan, nextPlan: null });
    await changePlan(ctx, tx, userId, nextPlan);
  });
