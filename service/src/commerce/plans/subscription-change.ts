import { type Plan, plans, type Subscription, type UpdateSubscription } from "@stoa/contract";
import { lockPlan, toUserId } from "../../accounts/people/users.ts";
import { type PlanConfig, planPriceMinor } from "../../core/config/plan-config.ts";
import type { Context, Member, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import type { Tax } from "../../integrations/taxes/taxes.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { isChargeOpen } from "../charges/charge-queries.ts";
import { cancelCharge, charge, refreshCharge } from "../charges/charges.ts";
import { choosePaymentMethod } from "../charges/payment-methods.ts";
import { computeBill, createPlanPayment, planTax } from "./bill.ts";
import { planPaymentTarget } from "./plan-payment.ts";
import {
  findOpenPayment,
  findPlan,
  findSubscription,
  type PaymentRow,
  type SubscriptionRow,
  updateSubscription,
} from "./queries.ts";
import { beginRenewal } from "./renewal.ts";
import { endSubscription, isPeriodPaid, startPeriod, unusedCredit } from "./subscription.ts";

interface RequestedChange extends UpdateSubscription {
  methodId: string | null;
  tax: Tax;
}

/** An upgrade is charged at once, a downgrade applies when the period ends. A request for the present plan cancels a downgrade. */
export async function changeSubscription(
  ctx: Context,
  caller: SessionCaller,
  request: UpdateSubscription,
  source: RequestSource,
) {
  mustBeOffered(ctx, request.plan);
  const methodId = await choosePaymentMethod(ctx, caller.userId, request.paymentMethodId);
  const change = { ...request, methodId, tax: await planTax(ctx, caller.userId, request.plan) };
  await cancelOtherPayment(ctx, caller.userId, change);
  const open = await ctx.db
    .transaction()
    .execute((tx) => startChange(ctx, tx, caller.userId, change, source));
  failPoint(ctx, "payment: created");
  const payment = open && (await charge(ctx, planPaymentTarget, open));
  mustNotHaveFailed(payment);
  return new DataResponse(await toSubscription(ctx, caller.userId), {
    status: payment && isChargeOpen(payment) ? 202 : 200,
  });
}

function mustBeOffered(ctx: Context, plan: Plan): void {
  if (planPriceMinor(ctx.config.planConfig, plan) === null)
    throw ruleViolation("plan", `${plan} is only available by agreement with the operator`);
}

/** Only one open payment may be charged, so one for another plan, method or tax is canceled. */
async function cancelOtherPayment(ctx: Context, userId: string, change: RequestedChange): Promise<void> {
  const open = await findOpenPayment(ctx.db, userId);
  if (!open || isForRequest(open, change)) return;
  if (isChargeOpen(await cancelCharge(ctx, planPaymentTarget, open))) throw paymentOpenError(open);
}

const isForRequest = (payment: PaymentRow, { plan, methodId, tax }: RequestedChange) =>
  payment.plan === plan &&
  payment.paymentMethodId === methodId &&
  payment.taxBasisPoints === tax.basisPoints &&
  payment.taxInclusive === tax.inclusive;

const paymentOpenError = ({ plan }: PaymentRow) =>
  new ApiError("CONFLICT", `A payment for the plan ${plan} is under way; try again when that has ended.`, {
    field: "plan",
  });

/** Runs under the account's lock. Returns the payment to charge, if any. */
async function startChange(
  ctx: Context,
  tx: Tx,
  userId: string,
  change: RequestedChange,
  source: RequestSource,
): Promise<PaymentRow | null> {
  const current = await lockPlan(tx, userId);
  mustNotBeByAgreement(ctx, current);
  await auditRequest(ctx, tx, userId, { current, change, source });
  const open = await findOpenPayment(tx, userId);
  if (open && !isForRequest(open, change)) throw paymentOpenError(open);
  if (open) return open;
  const subscription = await findSubscription(tx, userId);
  if (change.plan === current) {
    await updateSubscription(tx, userId, { nextPlan: null });
    const { methodId, tax } = change;
    return methodId ? beginRenewal(ctx, tx, userId, { tax, chosenMethodId: methodId }) : null;
  }
  if (isLower(change.plan, current) && isPeriodPaid(subscription, ctx.now())) {
    await updateSubscription(tx, userId, { nextPlan: change.plan });
    return null;
  }
  const credit = unusedCredit(subscription, ctx.config.planConfig.currency, ctx.now());
  return beginPlan(ctx, tx, userId, { change, credit });
}

function mustNotBeByAgreement(ctx: Context, plan: Plan): void {
  if (planPriceMinor(ctx.config.planConfig, plan) === null)
    throw ruleViolation("plan", `your plan ${plan} is by agreement: ask the operator to change it`);
}

const isLower = (plan: Plan, than: Plan) => plans.indexOf(plan) < plans.indexOf(than);

const auditRequest = (
  ctx: Context,
  tx: Tx,
  userId: string,
  { current, change, source }: { current: Plan; change: RequestedChange; source: RequestSource },
) =>
  recordAudit(ctx, tx, {
    actorId: userId,
    action: "subscription.requested",
    target: { type: "user", id: toUserId(userId) },
    source,
    details: { from: current, to: change.plan },
  });

async function beginPlan(
  ctx: Context,
  tx: Tx,
  userId: string,
  { change: { plan, methodId, tax }, credit }: { change: RequestedChange; credit: bigint },
): Promise<PaymentRow | null> {
  const { currency } = ctx.config.planConfig;
  const priceMinor = required(planPriceMinor(ctx.config.planConfig, plan), "the price of a plan");
  const { stepMinor, minimumMinor } = ctx.integrations.payments.limitsOf(currency);
  // Rounds the charge down to the provider's step: the owner gets the remainder as credit.
  const creditedMinor = credit + (credit < priceMinor ? (priceMinor - credit) % stepMinor : 0n);
  if (priceMinor === 0n) {
    await endSubscription(ctx, tx, userId, plan);
    return null;
  }
  if (!methodId) throw ruleViolation("paymentMethodId", "is required: you have no default payment method");
  // Waives an amount below the provider's minimum.
  if (creditedMinor >= priceMinor || computeBill(priceMinor, creditedMinor, tax).totalMinor < minimumMinor) {
    await startPeriod(ctx, tx, { userId, plan, priceMinor, currency, paymentMethodId: methodId });
    return null;
  }
  return createPlanPayment(ctx, tx, {
    userId,
    plan,
    priceMinor,
    creditMinor: creditedMinor,
    tax,
    methodId,
    renewsFrom: null,
    ownerPresent: true,
  });
}

function mustNotHaveFailed(payment: PaymentRow | null): void {
  if (payment?.status !== "failed" && payment?.status !== "canceled") return;
  throw new ApiError("INSUFFICIENT_FUNDS", undefined, { declineCode: payment.declineCode ?? "canceled" });
}

/** Refreshes an open payment first: the owner may just have confirmed it. */
export async function readSubscription(ctx: Context, caller: Member): Promise<Subscription> {
  const open = await findOpenPayment(ctx.db, caller.userId);
  if (open) await refreshCharge(ctx, planPaymentTarget, open);
  return toSubscription(ctx, caller.userId);
}

async function toSubscription(ctx: Context, userId: string): Promise<Subscription> {
  const { plan } = await findPlan(ctx.db, userId);
  const subscription = await findSubscription(ctx.db, userId);
  const payment = await findOpenPayment(ctx.db, userId);
  return {
    plan,
    periodStart: subscription?.periodStart.toISOString() ?? null,
    periodEnd: subscription?.periodEnd.toISOString() ?? null,
    scheduled: subscription?.nextPlan
      ? { plan: subscription.nextPlan, effectiveDate: subscription.periodEnd.toISOString() }
      : null,
    pastDue: subscription && subscription.tries > 0 ? toPastDue(subscription) : null,
    payment: payment ? toPayment(payment) : null,
    offers: toOffers(ctx.config.planConfig),
  };
}

const toPastDue = ({ periodEnd, tries, nextTryAt }: SubscriptionRow) => ({
  since: periodEnd.toISOString(),
  tries,
  nextTry: nextTryAt.toISOString(),
});

const toPayment = ({ plan, status, amountMinor, currency, actionUrl }: PaymentRow) => ({
  plan,
  status: status as "pending" | "requires_action",
  amount: toDecimal(amountMinor, currency),
  currency,
  ...(actionUrl && { nextAction: { url: actionUrl } }),
});

const toOffers = ({ currency, plans: offers }: PlanConfig): Subscription["offers"] =>
  plans.map((plan) => ({ plan, currency, ...offers[plan] }));
