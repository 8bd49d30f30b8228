import type { Plan } from "@stoa/contract";
import { findAccount } from "../../accounts/people/accounts.ts";
import { lockPlan, setPlan, toUserId } from "../../accounts/people/users.ts";
import { planPriceMinor } from "../../core/config/plan-config.ts";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { roundHalfUp } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
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

/** Sets the plan of an account, applies its quotas at once and publishes an event. An account with the same plan gets no event. */
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
}

export interface PaidPlan {
  userId: string;
  plan: Plan;
  priceMinor: bigint;
  currency: string;
  paymentMethodId: string;
}

/** Starts a paid period now. */
export async function startPeriod(ctx: Context, tx: Tx, bought: PaidPlan): Promise<Period> {
  const now = ctx.now();
  const period = await writePeriod(tx, bought, now, now.getUTCDate());
  await changePlan(ctx, tx, bought.userId, bought.plan);
  return period;
}

/**
 * Extends the plan by the paid month. A month that passed without a payment is skipped, and the paid month begins now. A period
 * that does not begin where the last one ended has its own anchor day, so that each price pays for one month.
 */
export async function continuePeriod(
  ctx: Context,
  tx: Tx,
  bought: PaidPlan,
  renewsFrom: Date,
): Promise<Period> {
  const subscription = await findSubscription(tx, bought.userId);
  const continues = subscription !== undefined && subscription.periodEnd.getTime() === renewsFrom.getTime();
  const anchorDay = continues ? subscription.anchorDay : renewsFrom.getUTCDate();
  const now = ctx.now();
  if (monthAfter(renewsFrom, anchorDay) <= now) return writePeriod(tx, bought, now, now.getUTCDate());
  return writePeriod(tx, bought, renewsFrom, anchorDay);
}

async function writePeriod(tx: Tx, bought: PaidPlan, start: Date, anchorDay: number): Promise<Period> {
  const end = monthAfter(start, anchorDay);
  await replaceSubscription(tx, {
    userId: bought.userId,
    plan: bought.plan,
    priceMinor: bought.priceMinor,
    currency: bought.currency,
    paymentMethodId: bought.paymentMethodId,
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

/**
 * Records a failed renewal, under the account's lock: schedules the next attempt or ends the plan, and emails the owner. A payment
 * that the owner started does not count, because the owner saw its result.
 */
export async function recordFailedRenewal(
  ctx: Context,
  tx: Tx,
  due: DueMonthOfUser,
  declineCode: string | null = null,
): Promise<void> {
  const subscription = await findSubscription(tx, due.userId);
  if (!subscription || subscription.nextTryAt > ctx.now()) return;
  const { email } = required(await findAccount(tx, due.userId), "the account");
  const days = RETRY_AFTER_DAYS[subscription.tries];
  if (days === undefined) {
    await endSubscription(ctx, tx, due.userId, "free");
    return queueEmail(ctx, tx, email, planEndedEmail(due));
  }
  const previous = RETRY_AFTER_DAYS[subscription.tries - 1] ?? 0;
  const nextTry = daysAfter(ctx.now(), days - previous);
  await updateSubscription(tx, due.userId, { tries: subscription.tries + 1, nextTryAt: nextTry });
  await queueEmail(ctx, tx, email, renewalFailedEmail(due, nextTry, declineCode));
}

/** Only the owner can confirm the charge at the bank, and the owner is absent. */
export async function emailConfirmation(
  ctx: Context,
  tx: Tx,
  due: DueMonthOfUser,
  url: string,
): Promise<void> {
  const { email } = required(await findAccount(tx, due.userId), "the account");
  await queueEmail(ctx, tx, email, confirmPaymentEmail(due, url));
}

/** Starts a plan that costs nothing now. */
export async function endSubscription(ctx: Context, tx: Tx, userId: string, plan: Plan): Promise<void> {
  await deleteSubscription(tx, userId);
  await changePlan(ctx, tx, userId, plan);
}

export const isPeriodPaid = (subscription: SubscriptionRow | undefined, now: Date) =>
  subscription !== undefined && subscription.periodEnd > now;

/** The value of the unused time of the paid period, in the currency of the new one. */
export function unusedCredit(subscription: SubscriptionRow | undefined, currency: string, now: Date): bigint {
  if (!subscription || !isPeriodPaid(subscription, now) || subscription.currency !== currency) return 0n;
  const { priceMinor, periodStart, periodEnd } = subscription;
  const unused = priceMinor * BigInt(periodEnd.getTime() - now.getTime());
  return roundHalfUp(unused, BigInt(periodEnd.getTime() - periodStart.getTime()));
}

/** The same day of the next month at the same time; the last day where the month is shorter. */
export function monthAfter(date: Date, day: number): Date {
  const next = new Date(date);
  next.setUTCMonth(next.getUTCMonth() + 1, 1);
  const lastDay = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 0)).getUTCDate();
  next.setUTCDate(Math.min(day, lastDay));
  return next;
}

/** Applies the downgrades whose period has ended. */
export const applyDueDowngrades = async (ctx: Context): Promise<void> =>
  forEachRow(
    await listDueDowngrades(ctx.db, ctx.now()),
    ({ userId }) => downgrade(ctx, userId),
    ({ userId }, err) =>
      ctx.log.error({ user: userId, err }, "a downgrade could not be applied; the next job run tries again"),
  );

/** Checks again under the account's lock: of two workers only one finds it due, and a late change by the owner counts. */
const downgrade = (ctx: Context, userId: string) =>
  ctx.db.transaction().execute(async (tx) => {
    await lockPlan(tx, userId);
    const subscription = await findSubscription(tx, userId);
    if (!subscription?.nextPlan || isPeriodPaid(subscription, ctx.now())) return;
    const { nextPlan } = subscription;
    if (planPriceMinor(ctx.config.planConfig, nextPlan) === 0n)
      return endSubscription(ctx, tx, userId, nextPlan);
    // The renewal charges the price of the new plan, because its period ends like that of every plan that continues.
    await updateSubscription(tx, userId, { plan: nextPlan, nextPlan: null });
    await changePlan(ctx, tx, userId, nextPlan);
  });
