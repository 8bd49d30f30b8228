import type { Plan } from "@stoa/contract";
import { lockPlan } from "../../accounts/people/users.ts";
import { planPriceMinor } from "../../core/config/plan-config.ts";
import type { Context } from "../../core/context.ts";
import { failPoint } from "../../core/fail-points.ts";
import type { Tax } from "../../integrations/taxes/taxes.ts";
import type { Tx } from "../../platform/db/database.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { defaultMethodOf, isUsableMethod } from "../charges/payment-methods.ts";
import { computeBill, createPlanPayment, planTax } from "./bill.ts";
import { chargeRenewal } from "./plan-payment.ts";
import {
  findOpenPayment,
  findSubscription,
  listDueRenewals,
  type PaymentRow,
  type SubscriptionRow,
} from "./queries.ts";
import { isPeriodPaid, monthAfter, recordFailedRenewal } from "./subscription.ts";

/**
 * Creates and charges the payments of due renewals. The subscription row has the due time, so a job run catches up on missed ones, and two
 * workers charge once.
 */
export const renewSubscriptions = async (ctx: Context): Promise<void> =>
  forEachRow(
    await listDueRenewals(ctx.db, ctx.now()),
    (due) => renew(ctx, due),
    ({ userId }, err) =>
      ctx.log.error({ user: userId, err }, "a plan could not be renewed; the next job run tries again"),
  );

async function renew(ctx: Context, { userId, plan }: { userId: string; plan: Plan }): Promise<void> {
  const tax = await planTax(ctx, userId, plan);
  const payment = await ctx.db.transaction().execute(async (tx) => {
    await lockPlan(tx, userId);
    return beginRenewal(ctx, tx, userId, { tax });
  });
  if (!payment) return;
  failPoint(ctx, "payment: created");
  await chargeRenewal(ctx, payment);
}

/**
 * Runs under the account's lock; returns null if no payment is due. A month that passed without a payment is not charged: the new month
 * begins now.
 */
export async function beginRenewal(
  ctx: Context,
  tx: Tx,
  userId: string,
  { tax, chosenMethodId }: { tax: Tax; chosenMethodId?: string },
): Promise<PaymentRow | null> {
  const now = ctx.now();
  const subscription = await findSubscription(tx, userId);
  if (!subscription || subscription.nextPlan || isPeriodPaid(subscription, now)) return null;
  if (!chosenMethodId && subscription.nextTryAt > now) return null;
  const { plan } = subscription;
  const priceMinor = planPriceMinor(ctx.config.planConfig, plan);
  if (!priceMinor || (await findOpenPayment(tx, userId))) return null;
  const isOver = monthAfter(subscription.periodEnd, subscription.anchorDay) <= now;
  const methodId = chosenMethodId ?? (await chooseMethod(ctx, subscription));
  if (!methodId) {
    const { currency } = ctx.config.planConfig;
    const { totalMinor } = computeBill(priceMinor, 0n, tax);
    await recordFailedRenewal(ctx, tx, { userId, plan, amountMinor: totalMinor, currency });
    return null;
  }
  const renewsFrom = isOver ? now : subscription.periodEnd;
  const ownerPresent = chosenMethodId !== undefined;
  const month = { userId, plan, priceMinor, creditMinor: 0n, renewsFrom };
  return createPlanPayment(ctx, tx, { ...month, tax, methodId, ownerPresent });
}

/** The subscription's method, or the owner's default if that one failed or was removed. */
async function chooseMethod(
  ctx: Context,
  { userId, tries, paymentMethodId }: SubscriptionRow,
): Promise<string | null> {
  const own = (await isUsableMethod(ctx, userId, paymentMethodId)) ? paymentMethodId : null;
  return tries === 0 && own ? own : ((await defaultMethodOf(ctx, userId)) ?? own);
}
