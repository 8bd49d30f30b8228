import { type ChangeSubscription, type Plan, plans, type Subscription } from "@stoa/contract";
import { lockPlan, toUserId } from "../../accounts/people/users.ts";
import { type PlanConfig, planPriceMinor } from "../../core/config/plan-config.ts";
import type { Context, Member, RequestSource, SessionCaller } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toDecimal } from "../../core/money/amount.ts";
import type { Tax } from "../../integrations/taxes/taxes.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { methodFor } from "../charges/methods.ts";
import { billOf, taxOf, writePayment } from "./bill.ts";
import { charge, giveUp, isOpen, refresh } from "./payment.ts";
import {
  changeSubscriptionRow,
  findOpenPayment,
  findPlan,
  findSubscription,
  type PaymentRow,
  type SubscriptionRow,
} from "./queries.ts";
import { beginRenewal } from "./renewal.ts";
import { creditMinor, endSubscription, isPaid, startPeriod } from "./subscription.ts";

interface Wish extends ChangeSubscription {
  methodId: string | null;
  tax: Tax;
}

/** Upgrades at once, for which a month is paid; downgrades when the paid period ends; the present plan takes both back. */
export async function changeSubscription(
  ctx: Context,
  caller: SessionCaller,
  request: ChangeSubscription,
  source: RequestSource,
) {
  mustBeOnOffer(ctx, request.plan);
  const methodId = await methodFor(ctx, caller.userId, request.paymentMethodId);
  const wish = { ...request, methodId, tax: await taxOf(ctx, caller.userId, request.plan) };
  await giveUpAnother(ctx, caller.userId, wish);
  const open = await ctx.db.transaction().execute((tx) => move(ctx, tx, caller.userId, wish, source));
  failPoint(ctx, "payment: written");
  const payment = open && (await charge(ctx, open));
  mustNotHaveFailed(payment);
  return new DataResponse(await toSubscription(ctx, caller.userId), {
    status: payment && isOpen(payment) ? 202 : 200,
  });
}

function mustBeOnOffer(ctx: Context, plan: Plan): void {
  if (planPriceMinor(ctx.config.planConfig, plan) === null)
    throw ruleViolation("plan", `${plan} is by agreement with the operator`);
}

/** Another plan, method or tax than the one that waits for its payment: only one of them may be charged. */
async function giveUpAnother(ctx: Context, userId: string, wish: Wish): Promise<void> {
  const open = await findOpenPayment(ctx.db, userId);
  if (!open || isFor(open, wish)) return;
  if (isOpen(await giveUp(ctx, open))) throw stillOpen(open);
}

const isFor = (payment: PaymentRow, { plan, methodId, tax }: Wish) =>
  payment.plan === plan &&
  payment.paymentMethodId === methodId &&
  payment.taxBasisPoints === tax.basisPoints &&
  payment.taxInclusive === tax.inclusive;

const stillOpen = ({ plan }: PaymentRow) =>
  new ApiError("CONFLICT", `A payment for the plan ${plan} is under way; try again when that has ended.`, {
    field: "plan",
  });

/** What a wish does to the account, under its lock; answers the payment that has to be made first, if any. */
async function move(
  ctx: Context,
  tx: Tx,
  userId: string,
  wish: Wish,
  source: RequestSource,
): Promise<PaymentRow | null> {
  const current = await lockPlan(tx, userId);
  mustBeLeavable(ctx, current);
  await noteWish(ctx, tx, userId, { current, wish, source });
  const open = await findOpenPayment(tx, userId);
  if (open && !isFor(open, wish)) throw stillOpen(open);
  if (open) return open;
  const subscription = await findSubscription(tx, userId);
  if (wish.plan === current) {
    await changeSubscriptionRow(tx, userId, { next_plan: null });
    const { methodId, tax } = wish;
    return methodId ? beginRenewal(ctx, tx, userId, { tax, chosenMethodId: methodId }) : null;
  }
  if (isLower(wish.plan, current) && isPaid(subscription, ctx.now())) {
    await changeSubscriptionRow(tx, userId, { next_plan: wish.plan });
    return null;
  }
  const credit = creditMinor(subscription, ctx.config.planConfig.currency, ctx.now());
  return begin(ctx, tx, userId, { wish, credit });
}

function mustBeLeavable(ctx: Context, plan: Plan): void {
  if (planPriceMinor(ctx.config.planConfig, plan) === null)
    throw ruleViolation("plan", `yours, ${plan}, is by agreement with the operator: ask them to change it`);
}

const isLower = (plan: Plan, than: Plan) => plans.indexOf(plan) < plans.indexOf(than);

const noteWish = (
  ctx: Context,
  tx: Tx,
  userId: string,
  { current, wish, source }: { current: Plan; wish: Wish; source: RequestSource },
) =>
  recordAudit(ctx, tx, {
    actorId: userId,
    action: "subscription.requested",
    target: { type: "user", id: toUserId(userId) },
    source,
    details: { from: current, to: wish.plan },
  });

/** Begins the plan, or the payment that it needs. */
async function begin(
  ctx: Context,
  tx: Tx,
  userId: string,
  { wish: { plan, methodId, tax }, credit }: { wish: Wish; credit: bigint },
): Promise<PaymentRow | null> {
  const { currency } = ctx.config.planConfig;
  const priceMinor = planPriceMinor(ctx.config.planConfig, plan)!;
  const { stepMinor, minimumMinor } = ctx.integrations.payments.limitsOf(currency);
  // Up to what the provider charges: a part of its step is the owner's.
  const creditedMinor = credit + (credit < priceMinor ? (priceMinor - credit) % stepMinor : 0n);
  if (priceMinor === 0n) {
    await endSubscription(ctx, tx, userId, plan);
    return null;
  }
  if (!methodId) throw ruleViolation("paymentMethodId", "is needed: you have no default payment method");
  // What is too little to be charged is waived.
  if (creditedMinor >= priceMinor || billOf(priceMinor, creditedMinor, tax).totalMinor < minimumMinor) {
    await startPeriod(ctx, tx, { userId, plan, priceMinor, currency, paymentMethodId: methodId });
    return null;
  }
  return writePayment(ctx, tx, {
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

/** The plan as it stands. Of an open payment the provider is asked first, because it may just have been confirmed. */
export async function readSubscription(ctx: Context, caller: Member): Promise<Subscription> {
  const open = await findOpenPayment(ctx.db, caller.userId);
  if (open) await refresh(ctx, open);
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
    offers: offersOf(ctx.config.planConfig),
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

const offersOf = ({ currency, plans: offers }: PlanConfig): Subscription["offers"] =>
  plans.map((plan) => ({ plan, currency, ...offers[plan] }));
