import { findAccount } from "../../accounts/people/accounts.ts";
import { lockPlan, toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import {
  createChargeAttempts,
  isConfirmationOverdue,
  type Paid,
  type Settlement,
  toUnpaidChange,
  type Unpaid,
} from "../charges/charge-attempts.ts";
import { postTransaction } from "../ledger/ledger.ts";
import {
  deleteOpenPayment,
  findOpenPayment,
  findPayment,
  findPlan,
  findSubscription,
  hasLaterPayment,
  listOpenPayments,
  listPaymentsPossiblyChargedLate,
  lockPayment,
  markPaymentAsked,
  markPaymentCheckedLate,
  nextPlanReceiptNumber,
  type PaymentRow,
  type PaymentUpdate,
  recordPaymentMismatch,
  setUnusablePayment,
  updatePayment,
} from "./queries.ts";
import { continuePeriod, emailConfirmation, recordFailedRenewal, startPeriod } from "./subscription.ts";

export const isPaymentOpen = ({ status }: PaymentRow) => status === "pending" || status === "requires_action";

/** Whether a payment for a plan may still go either way. */
export const hasOpenPayment = async (db: Queries, userId: string): Promise<boolean> =>
  (await findOpenPayment(db, userId)) !== undefined;

const attempts = createChargeAttempts<PaymentRow>({
  noun: "payment",
  providerReference: (id) => toId("pay", id),
  requestOf: (payment) => ({
    orderId: toId("pay", payment.id),
    amountMinor: payment.amountMinor,
    currency: payment.currency,
    methodId: payment.paymentMethodId,
    userId: toUserId(payment.userId),
    description: `Stoa ${payment.plan}, one month`,
    buyer: payment.ownerPresent ? "present" : "absent",
    recurs: true,
  }),
  isOpen: isPaymentOpen,
  // Money may come for a payment that was given up.
  isFinal: (payment) => !isPaymentOpen(payment) && payment.status !== "canceled",
  find: findPayment,
  listOpen: listOpenPayments,
  markAsked: markPaymentAsked,
  listPossiblyChargedLate: listPaymentsPossiblyChargedLate,
  markCheckedLate: markPaymentCheckedLate,
  deleteOpen: deleteOpenPayment,
  settle: settlePlanPayment,
  abandon: onUnknownToProvider,
  recordMismatch: recordPaymentMismatch,
});

export const {
  charge: chargePlanPayment,
  refresh: refreshPlanPayment,
  cancel: cancelPlanPayment,
  reconcile: reconcilePayments,
} = attempts;

/**
 * Asks for a renewal. Its owner is not there to be told that the provider does not know their method: that counts as a try, with the
 * row gone, and the next one may find another method.
 */
export async function chargeRenewal(ctx: Context, payment: PaymentRow): Promise<void> {
  try {
    await chargePlanPayment(ctx, payment);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "PAYMENT_METHOD_NOT_FOUND") throw error;
    await ctx.db.transaction().execute(async (tx) => {
      await lockPlan(tx, payment.userId);
      await recordFailedRenewal(ctx, tx, payment);
    });
  }
}

/** A renewal is charged again under the same id. Another payment is canceled: the user can choose the plan again. */
async function onUnknownToProvider(ctx: Context, id: string): Promise<void> {
  const payment = await findPayment(ctx.db, id);
  if (payment?.renewsFrom) return chargeRenewal(ctx, payment);
  await updatePayment(ctx.db, id, { status: "canceled", settledAt: ctx.now() });
}

/** The provider says that something changed of a charge; when it is for a plan, asks what. */
export async function syncPlanPaymentFromProvider(ctx: Context, paymentId: string): Promise<void> {
  const id = toUuid("pay", paymentId);
  if (id) await attempts.syncFromProvider(ctx, id);
}

/** Moves an open payment to what the provider says, the plan and the books with it; one that is settled already stays as it is. */
async function settlePlanPayment(ctx: Context, id: string, settlement: Settlement): Promise<PaymentRow> {
  const known = required(await findPayment(ctx.db, id), "the payment");
  await ctx.db.transaction().execute(async (tx) => {
    // Every change of a plan locks the account first.
    await lockPlan(tx, known.userId);
    const payment = await lockPayment(tx, id);
    if (payment && isPaymentOpen(payment)) await applySettlement(ctx, tx, payment, settlement);
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

/** Its owner is not there when a plan is renewed: what they have to know is written to them. */
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
      // Sooner it was its owner, who pays in another way or not at all.
      if (isConfirmationOverdue(payment.createdAt, ctx.now())) await recordFailedRenewal(ctx, tx, payment);
  }
}

/**
 * Money for a payment that we had given up pays for what it was meant for, unless that is paid, or its owner gone, by now. What came in
 * vain stays so, because somebody may be giving it back.
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
  const goesOn = subscription?.periodEnd.getTime() === payment.renewsFrom?.getTime();
  await completePlanPayment(ctx, tx, goesOn ? payment : { ...payment, renewsFrom: null }, settlement);
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
    "money came late for a plan that is not to be had by it any more: give it back at the payment provider",
  );
}

/** Paid otherwise since, or given by an operator, or closed with the account. */
async function isObsolete(tx: Tx, payment: PaymentRow): Promise<boolean> {
  const account = await findAccount(tx, payment.userId);
  if (!account || account.closedAt || (await hasLaterPayment(tx, payment))) return true;
  const { plan } = await findPlan(tx, payment.userId);
  return plan !== "free" && (await findSubscription(tx, payment.userId)) === undefined;
}

/** The month is paid: the plan holds for it, and the books and the receipt say so. */
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
    // Last, because all plan payments wait for the counter until this transaction commits.
    receiptNumber: await nextPlanReceiptNumber(tx, now.getUTCFullYear()),
  });
  failPoint(ctx, "payment: settling");
}

/** What a plan costs is the platform's, but for its tax and what the provider kept. */
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
  const standing = toUnpaidChange(unpaid);
  const isSettled = standing.status === "failed" || standing.status === "canceled";
  return { ...standing, ...(isSettled && { settledAt: now }) };
}

export async function cancelOpenPayment(ctx: Context, userId: string): Promise<void> {
  const open = await findOpenPayment(ctx.db, userId);
  if (open) await cancelPlanPayment(ctx, open);
}
