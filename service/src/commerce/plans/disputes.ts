import type { Plan } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { lockPlan, toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { toLongDate } from "../../core/dates.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { formatMoneyWithSymbol } from "../../core/money/amount.ts";
import { splitRefund } from "../../core/money/split.ts";
import { required } from "../../core/required.ts";
import type { Dispute } from "../../integrations/payments/payments.ts";
import type { Tx } from "../../platform/db/database.ts";
import { syncCharge } from "../charges/charges.ts";
import {
  type AuditedDispute,
  auditDispute,
  isInquiry,
  newDisputeRow,
  notPaidYetError,
} from "../charges/dispute-record.ts";
import { postTransaction } from "../ledger/ledger.ts";
import {
  findPlanDispute,
  insertPlanDispute,
  sumLostToDisputes,
  updatePlanDispute,
} from "./dispute-queries.ts";
import { disputeLostEmail } from "./plan-emails.ts";
import { cancelOpenPayment, planPaymentTarget } from "./plan-payment.ts";
import {
  findOpenPayment,
  findPayment,
  findSubscription,
  type PaymentRow,
  updateSubscription,
} from "./queries.ts";
import { endSubscription } from "./subscription.ts";

/** Returns false if the dispute is not about a plan payment. */
export async function applyPlanDispute(ctx: Context, reported: Dispute): Promise<boolean> {
  const id = toUuid("pay", reported.orderId);
  const known = id ? await findPayment(ctx.db, id) : undefined;
  if (!known) return false;
  if (known.status !== "completed") await syncCharge(ctx, planPaymentTarget, reported.orderId);
  if (reported.state === "lost") await cancelRenewal(ctx, known.userId);
  await ctx.db.transaction().execute(async (tx) => {
    await lockPlan(tx, known.userId);
    await syncDisputeRow(ctx, tx, required(await findPayment(tx, known.id), "the payment"), reported);
  });
  return true;
}

/** A user who reclaimed a payment is not charged for the next month. */
async function cancelRenewal(ctx: Context, userId: string): Promise<void> {
  if ((await findOpenPayment(ctx.db, userId))?.renewsFrom) await cancelOpenPayment(ctx, userId);
}

const isDecided = ({ state }: Dispute) => state === "inquiry_closed" || state === "won" || state === "lost";

/** An open dispute holds nothing, because the money is the marketplace's own. Does not change a decided dispute. */
async function syncDisputeRow(ctx: Context, tx: Tx, payment: PaymentRow, reported: Dispute): Promise<void> {
  if (payment.status !== "completed") throw notPaidYetError(payment.status);
  const known = await findPlanDispute(tx, reported.disputeId);
  // An inquiry can become a dispute after it was closed, too.
  const isReopened = known?.status === "inquiry_closed" && !isInquiry(reported);
  if (known?.closedAt && !isReopened) return;
  const now = ctx.now();
  const row = toNewDispute(ctx, payment, reported);
  const id = known?.id ?? row.id;
  if (!known) await insertPlanDispute(tx, row);
  else if (reported.state === "open") await updatePlanDispute(tx, id, { status: "open", closedAt: null });
  if (!known || (reported.state === "open" && known.status !== "open"))
    await auditPlanDispute(ctx, tx, payment, reported, reported.state === "inquiry" ? "inquiry" : "opened");
  if (!isDecided(reported)) return;
  if (reported.state === "lost") await applyLoss(ctx, tx, payment, reported, id);
  else
    await updatePlanDispute(tx, id, {
      status: reported.state as "won" | "inquiry_closed",
      feeMinor: reported.feeMinor,
      closedAt: now,
    });
  if (reported.state === "won") await auditPlanDispute(ctx, tx, payment, reported, "won");
}

const toNewDispute = (ctx: Context, payment: PaymentRow, reported: Dispute) => ({
  ...newDisputeRow(ctx, reported),
  paymentId: payment.id,
  status: isInquiry(reported) ? ("inquiry" as const) : ("open" as const),
});

async function applyLoss(
  ctx: Context,
  tx: Tx,
  payment: PaymentRow,
  reported: Dispute,
  id: string,
): Promise<void> {
  const now = ctx.now();
  const takenMinor = await sumLostToDisputes(tx, payment.id);
  const remainingMinor = payment.amountMinor - takenMinor;
  const backMinor = reported.amountMinor < remainingMinor ? reported.amountMinor : remainingMinor;
  const excessMinor = reported.amountMinor - backMinor;
  await postLostDispute(ctx, tx, payment, {
    id,
    takenMinor,
    backMinor,
    excessMinor,
    feeMinor: reported.feeMinor,
  });
  await updatePlanDispute(tx, id, {
    status: "lost",
    feeMinor: reported.feeMinor,
    closedAt: now,
    lostMinor: reported.amountMinor,
    excessMinor,
  });
  await auditPlanDispute(ctx, tx, payment, reported, "lost");
  const { isOver, until } = await endPlan(ctx, tx, payment);
  ctx.log.warn(
    { payment: payment.id, dispute: reported.disputeId },
    "a dispute of a payment for a plan is lost: the marketplace bears it, and the plan ends",
  );
  const end = isOver ? null : until;
  const notification = {
    userId: payment.userId,
    kind: "plan.disputed" as const,
    subjectId: toUserId(payment.userId),
    data: {
      plan: payment.plan,
      amount: formatMoneyWithSymbol(payment.amountMinor, payment.currency),
      until: end && toLongDate(end),
    },
    occurrence: id,
  };
  await notifyAccount(ctx, tx, notification, disputeLostEmail(payment, end));
}

interface LostDispute {
  id: string;
  takenMinor: bigint;
  backMinor: bigint;
  excessMinor: bigint;
  feeMinor: bigint;
}

/** Reverses revenue and tax by their share. An amount above the payment is a loss, and the provider's fee is an expense. */
async function postLostDispute(ctx: Context, tx: Tx, payment: PaymentRow, lost: LostDispute): Promise<void> {
  const { id, takenMinor, backMinor, excessMinor, feeMinor } = lost;
  const { amountMinor: totalMinor, taxMinor, currency } = payment;
  const parts = {
    totalMinor,
    taxMinor,
    feeMinor: totalMinor - taxMinor,
    commissionMinor: 0n,
    sellerMinor: 0n,
  };
  const back = backMinor === 0n ? { taxMinor: 0n } : splitRefund(parts, takenMinor, backMinor);
  await postTransaction(ctx, tx, {
    kind: "subscription_dispute_lost",
    sourceId: id,
    currency,
    entries: [
      { account: "provider_clearing", amountMinor: backMinor + excessMinor + feeMinor },
      { account: "platform_revenue", amountMinor: back.taxMinor - backMinor },
      { account: "tax_payable", amountMinor: -back.taxMinor },
      { account: "dispute_losses", amountMinor: -excessMinor },
      { account: "processor_fees", amountMinor: -feeMinor },
    ],
  });
}

/** Ends the plan at once if the disputed payment paid for the present period; otherwise when the paid period ends. */
async function endPlan(
  ctx: Context,
  tx: Tx,
  { userId, period }: PaymentRow,
): Promise<{ isOver: boolean; until: Date | null }> {
  const subscription = await findSubscription(tx, userId);
  if (!subscription) return { isOver: true, until: null };
  if (period && period.end < subscription.periodEnd) {
    await updateSubscription(tx, userId, { nextPlan: FREE });
    return { isOver: false, until: subscription.periodEnd };
  }
  await endSubscription(ctx, tx, userId, FREE);
  return { isOver: true, until: null };
}

const FREE: Plan = "free";

const auditPlanDispute = (
  ctx: Context,
  tx: Tx,
  { userId, id, currency }: PaymentRow,
  { amountMinor, reason }: Dispute,
  kind: AuditedDispute["kind"],
) =>
  auditDispute(ctx, tx, {
    target: { type: "user", id: toUserId(userId) },
    details: { paymentId: toId("pay", id) },
    amountMinor,
    currency,
    reason,
    kind,
  });
