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

/** Moves an account to a plan, for its callers at once, and tells the account so; an account that has it stays untold. */
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

/** The plan holds from now on, for a month that is paid. */
export async function startPeriod(ctx: Context, tx: Tx, bought: PaidPlan): Promise<Period> {
  const now = ctx.now();
  const period = await writePeriod(tx, bought, now, now.getUTCDate());
  await changePlan(ctx, tx, bought.userId, bought.plan);
  return period;
}

/**
 * The plan goes on for the month that was paid; it holds already. A month that was over before it was paid, because nobody asked for
 * so long, is skipped: the paid one begins now. What does not begin where the last one ended has an anchor of its own, so that
 * each price pays for one month.
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

/** Days after the first try on which a renewal is tried again; after the last one the plan ends. */
const RETRY_AFTER_DAYS = [3, 7];

/**
 * A renewal could not be paid, told under the account's lock: it is tried again, or the plan ends, and its owner hears of it. What
 * its owner tried in between is not counted: they have seen the answer.
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

/** Only its owner can confirm what the bank asks about, and they are not there. */
export async function emailConfirmation(
  ctx: Context,
  tx: Tx,
  due: DueMonthOfUser,
  url: string,
): Promise<void> {
  const { email } = required(await findAccount(tx, due.userId), "the account");
  await queueEmail(ctx, tx, email, confirmPaymentEmail(due, url));
}

/** The plan holds from now on, and costs nothing. */
export async function endSubscription(ctx: Context, tx: Tx, userId: string, plan: Plan): Promise<void> {
  await deleteSubscription(tx, userId);
  await changePlan(ctx, tx, userId, plan);
}

export const isPeriodPaid = (subscription: SubscriptionRow | undefined, now: Date) =>
  subscription !== undefined && subscription.periodEnd > now;

/** What is unused of the paid period, by time, in the currency that a new one is paid in. */
export function unusedCredit(subscription: SubscriptionRow | undefined, currency: string, now: Date): bigint {
  if (!subscription || !isPeriodPaid(subscription, now) || subscription.currency !== currency) return 0n;
  const { priceMinor, periodStart, periodEnd } = subscription;
  const unused = priceMinor * BigInt(periodEnd.getTime() - now.getTime());
  return roundHalfUp(unused, BigInt(periodEnd.getTime() - periodStart.getTime()));
}

/** That day of the next month, at the same time; where the month has no such day, its last one. */
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
      ctx.log.error({ user: userId, err }, "a downgrade could not be applied; the next round tries again"),
  );

/** Looked at again under the account's lock: of two workers one finds it due, and a late change of mind counts. */
const downgrade = (ctx: Context, userId: string) =>
  ctx.db.transaction().execute(async (tx) => {
    await lockPlan(tx, userId);
    const subscription = await findSubscription(tx, userId);
    if (!subscription?.nextPlan || isPeriodPaid(subscription, ctx.now())) return;
    const { nextPlan } = subscription;
    if (planPriceMinor(ctx.config.planConfig, nextPlan) === 0n)
      return endSubscription(ctx, tx, userId, nextPlan);
    // Its period has ended as that of every plan which goes on: the renewal asks the new plan's price.
    await updateSubscription(tx, userId, { plan: nextPlan, nextPlan: null });
    await changePlan(ctx, tx, userId, nextPlan);
  });
