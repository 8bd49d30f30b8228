import { findAccount } from "../../accounts/people/accounts.ts";
import { lockPlan, toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { isChargeOpen } from "../charges/charge-queries.ts";
import {
  type ChargeTarget,
  cancelCharge,
  charge,
  isConfirmationOverdue,
  type Paid,
  type Settlement,
  toUnpaidChange,
  type Unpaid,
} from "../charges/charges.ts";
import { postTransaction } from "../ledger/ledger.ts";
import {
  findOpenPayment,
  findPayment,
  findPlan,
  findSubscription,
  hasLaterPayment,
  lockPayment,
  nextPlanReceiptNumber,
  type PaymentRow,
  type PaymentUpdate,
  setUnusablePayment,
  updatePayment,
} from "./queries.ts";
import { continuePeriod, emailConfirmation, recordFailedRenewal, startPeriod } from "./subscription.ts";

export const hasOpenPayment = async (db: Queries, userId: string): Promise<boolean> =>
  (await findOpenPayment(db, userId)) !== undefined;

export const planPaymentTarget: ChargeTarget<PaymentRow> = {
  kind: "payment",
  table: "subscriptionPayments",
  idPrefix: "pay",
  toRequest: (payment) => ({
    orderId: toId("pay", payment.id),
    amountMinor: payment.amountMinor,
    currency: payment.currency,
    methodId: payment.paymentMethodId,
    userId: toUserId(payment.userId),
    description: `Stoa ${payment.plan}, one month`,
    buyer: payment.ownerPresent ? "present" : "absent",
    recurs: true,
  }),
  find: findPayment,
  settle: settlePlanPayment,
  onNeverReceived: onPaymentNeverReceived,
};

/** Deletes the row if the provider does not know the payment method. The attempt then counts as failed. */
export async function chargeRenewal(ctx: Context, payment: PaymentRow): Promise<void> {
  try {
    await charge(ctx, planPaymentTarget, payment);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "PAYMENT_METHOD_NOT_FOUND") throw error;
    await ctx.db.transaction().execute(async (tx) => {
      await lockPlan(tx, payment.userId);
      await recordFailedRenewal(ctx, tx, payment);
    });
  }
}

/** Charges a renewal again under the same id. Cancels other payments: the user can choose the plan again. */
async function onPaymentNeverReceived(ctx: Context, id: string): Promise<void> {
  const payment = await findPayment(ctx.db, id);
  if (payment?.renewsFrom) return chargeRenewal(ctx, payment);
  await updatePayment(ctx.db, id, { status: "canceled", settledAt: ctx.now() });
}

/** Changes only an open or canceled payment. */
async function settlePlanPayment(ctx: Context, id: string, settlement: Settlement): Promise<PaymentRow> {
  const known = required(await findPayment(ctx.db, id), "the payment");
  await ctx.db.transaction().execute(async (tx) => {
    // Lock order: the account before the payment.
    await lockPlan(tx, known.userId);
    const payment = await lockPayment(tx, id);
    if (payment && isChargeOpen(payment)) await applySettlement(ctx, tx, payment, settlement);
    else if (payment?.status === "canceled") await settleLatePayment(ctx, tx, payment, settlement);
  });
  return (await findPayment(ctx.db, id)) ?? known;
}

async function applySettlement(
  ctx: Context,
  tx: Tx,
  payment: PaymentRow,
  settlement: Settlement,
): Promise<void> {
  if (settlement.state === "succeeded") return completePlanPayment(ctx, tx, payment, settlement);
  if (payment.renewsFrom) await emailUnpaidRenewal(ctx, tx, payment, settlement);
  await updatePayment(tx, payment.id, toPaymentUpdate(settlement, ctx.now()));
}

/** The owner is absent when a plan is renewed. */
async function emailUnpaidRenewal(
  ctx: Context,
  tx: Tx,
  payment: PaymentRow,
  settlement: Unpaid,
): Promise<void> {
  switch (settlement.state) {
    case "requires_action":
      if (payment.status !== "requires_action") await emailConfirmation(ctx, tx, payment, settlement.url);
      return;
    case "declined":
      return recordFailedRenewal(ctx, tx, payment, settlement.declineCode);
    case "canceled":
      // Before the deadline only the owner cancels a payment, to pay in another way or not at all.
      if (isConfirmationOverdue(payment.createdAt, ctx.now())) await recordFailedRenewal(ctx, tx, payment);
  }
}

/**
 * A late payment still pays for its plan unless the plan is paid otherwise or the account is closed. An unusable payment stays unusable,
 * because the operator may be refunding it.
 */
async function settleLatePayment(
  ctx: Context,
  tx: Tx,
  payment: PaymentRow,
  settlement: Settlement,
): Promise<void> {
  const { id, unusablePaymentId } = payment;
  if (settlement.state !== "succeeded") {
    if (settlement.state === "canceled" && unusablePaymentId) await setUnusablePayment(tx, id, null);
    return;
  }
  if (unusablePaymentId) return;
  if (await isObsolete(tx, payment)) return recordUnusablePayment(ctx, tx, id, settlement);
  const subscription = await findSubscription(tx, payment.userId);
  const continues = subscription?.periodEnd.getTime() === payment.renewsFrom?.getTime();
  await completePlanPayment(ctx, tx, continues ? payment : { ...payment, renewsFrom: null }, settlement);
}

async function recordUnusablePayment(
  { log }: Context,
  tx: Tx,
  id: string,
  { paymentId }: Paid,
): Promise<void> {
  await setUnusablePayment(tx, id, paymentId);
  log.error(
    { payment: id, paymentId },
    "a late payment can no longer buy its plan: refund it at the payment provider",
  );
}

async function isObsolete(tx: Tx, payment: PaymentRow): Promise<boolean> {
  const account = await findAccount(tx, payment.userId);
  if (!account || account.closedAt || (await hasLaterPayment(tx, payment))) return true;
  const { plan } = await findPlan(tx, payment.userId);
  return plan !== "free" && (await findSubscription(tx, payment.userId)) === undefined;
}

async function completePlanPayment(ctx: Context, tx: Tx, payment: PaymentRow, paid: Paid): Promise<void> {
  const now = ctx.now();
  const { start, end } = payment.renewsFrom
    ? await continuePeriod(ctx, tx, payment, payment.renewsFrom)
    : await startPeriod(ctx, tx, payment);
  await postPlanPayment(ctx, tx, payment, paid.feeMinor ?? 0n);
  await updatePayment(tx, payment.id, {
    status: "completed",
    paymentId: paid.paymentId,
    paymentMethod: JSON.stringify(paid.method),
    settledAt: now,
    actionUrl: null,
    processorFeeMinor: paid.feeMinor,
    periodStart: start,
    periodEnd: end,
    receiptYear: now.getUTCFullYear(),
    // Last, because all plan payments wait for the receipt counter until this transaction commits.
    receiptNumber: await nextPlanReceiptNumber(tx, now.getUTCFullYear()),
  });
  failPoint(ctx, "payment: settling");
}

const postPlanPayment = (
  ctx: Context,
  tx: Tx,
  { id, amountMinor, taxMinor, currency }: PaymentRow,
  processorFee: bigint,
) =>
  postTransaction(ctx, tx, {
    kind: "subscription",
    sourceId: id,
    currency,
    entries: [
      { account: "provider_clearing", amountMinor: processorFee - amountMinor },
      { account: "processor_fees", amountMinor: -processorFee },
      { account: "platform_revenue", amountMinor: amountMinor - taxMinor },
      { account: "tax_payable", amountMinor: taxMinor },
    ],
  });

function toPaymentUpdate(unpaid: Unpaid, now: Date): PaymentUpdate {
  const change = toUnpaidChange(unpaid);
  const isSettled = change.status === "failed" || change.status === "canceled";
  return { ...change, ...(isSettled && { settledAt: now }) };
}

export async function cancelOpenPayment(ctx: Context, userId: string): Promise<void> {
  const open = await findOpenPayment(ctx.db, userId);
  if (open) await cancelCharge(ctx, planPaymentTarget, open);
}
