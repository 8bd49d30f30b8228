import { toVisibleLine } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { grantEntitlement } from "../../catalog/entitlements/entitlements.ts";
import { isWithheld } from "../../catalog/products/detail.ts";
import { includeReviewInRating } from "../../catalog/reviews/rating.ts";
import { countSale } from "../../catalog/search/product-stats.ts";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId } from "../../core/ids.ts";
import { formatMoneyWithSymbol, toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Tx } from "../../platform/db/database.ts";
import { inPipelinedTransaction, waitForAll } from "../../platform/db/pipeline.ts";
import { isChargeFinal, isChargeOpen } from "../charges/charge-queries.ts";
import {
  type ChargeTarget,
  type Paid,
  type Settlement,
  toUnpaidChange,
  type Unpaid,
} from "../charges/charges.ts";
import { postSale } from "../orders/order-postings.ts";
import {
  completeOrderRow,
  findOrder,
  lockOrder,
  lockOrderToSettle,
  type OrderRow,
  type OrderToSettle,
  type Usability,
  updateOrder,
} from "../orders/queries.ts";
import { createAutomaticRefund, submitRefund } from "../refunds/refund-submission.ts";

/** At least a week, because disputes come early; longer where the refund window is longer. */
const MATURES_AFTER_DAYS = 7;

export const orderTarget: ChargeTarget<OrderRow> = {
  kind: "order",
  table: "orders",
  idPrefix: "ord",
  toRequest: (order) => ({
    orderId: toId("ord", order.id),
    amountMinor: order.totalMinor,
    currency: order.currency,
    methodId: required(order.paymentMethodId, "the payment method of an order"),
    userId: toUserId(order.buyerId),
    description: toVisibleLine(order.productTitle),
    buyer: "present",
    recurs: false,
  }),
  find: findOrder,
  settle: settleOrder,
  onNeverReceived: cancelUnknownOrder,
};

async function cancelUnknownOrder(ctx: Context, id: string): Promise<void> {
  await ctx.db.transaction().execute(async (tx) => {
    const order = await lockOrder(tx, id);
    if (order && isChargeOpen(order)) await updateOrder(tx, id, { status: "canceled" });
  });
}

/** Changes only an open or canceled order. */
export async function settleOrder(ctx: Context, orderId: string, settlement: Settlement): Promise<OrderRow> {
  const { settled, refundId } = await inPipelinedTransaction(
    ctx.pool,
    (tx) => lockOrderToSettle(tx, orderId),
    async (tx, found): Promise<Settled> => {
      if (!found) throw new ApiError("ORDER_NOT_FOUND");
      const { order } = found;
      if (isChargeFinal(order)) return { settled: order };
      if (settlement.state !== "succeeded") return { settled: await recordUnpaid(tx, order, settlement) };
      return applyPayment(ctx, tx, found, settlement);
    },
  );
  if (!refundId) return settled;
  await submitRefund(ctx, refundId);
  return required(await findOrder(ctx.db, orderId), "the order");
}

interface Settled {
  settled: OrderRow;
  /** Of a payment that gives the buyer nothing. */
  refundId?: string;
}

async function recordUnpaid(tx: Tx, order: OrderRow, settlement: Unpaid): Promise<OrderRow> {
  if (!isChargeOpen(order)) return order;
  const [, changed] = await waitForAll([
    updateOrder(tx, order.id, toUnpaidChange(settlement)),
    findOrder(tx, order.id),
  ]);
  return required(changed, "the order");
}

/** A late payment also completes a canceled order. */
async function applyPayment(
  ctx: Context,
  tx: Tx,
  { order, usability, hasReview }: OrderToSettle,
  { paymentId, method, feeMinor }: Paid,
): Promise<Settled> {
  const paid = { ...order, paymentId, paymentMethod: method, processorFeeMinor: feeMinor };
  if (!isUsable(usability)) return { settled: paid, refundId: await refundUnusablePayment(ctx, tx, paid) };
  return { settled: await completeOrder(ctx, tx, paid, { mayHaveReview: hasReview }) };
}

const isUsable = ({ isOwned, isPartyGone, moderationCode }: Usability): boolean =>
  !isOwned && !isPartyGone && !isWithheld({ moderationCode });

/**
 * Runs in the transaction that records the payment or the free order, and returns the completed order. The statements
 * start in the order in which locks are taken everywhere.
 */
export async function completeOrder(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  { mayHaveReview }: { mayHaveReview: boolean },
): Promise<OrderRow> {
  const now = ctx.now();
  const maturesAt = maturityDate(order, now);
  const bought = { id: order.id, buyerId: order.buyerId, productId: order.productId };
  const effects = [
    grantEntitlement(ctx, tx, { ...bought, version: order.productVersion }),
    // Of an earlier purchase, which was refunded.
    ...(mayHaveReview ? [includeReviewInRating(tx, order.buyerId, order.productId)] : []),
    postSale(ctx, tx, { ...order, maturesAt }, now),
    countSale(tx, order.productId, now),
    publishCompletion(ctx, tx, order),
    notifySeller(ctx, tx, order),
  ];
  const completed = completeWithReceipt(ctx, tx, order, now, maturesAt);
  await waitForAll([...effects, completed]);
  return { ...(await completed), entitlementStatus: "active" };
}

const publishCompletion = async (ctx: Context, tx: Tx, order: OrderRow) =>
  publishEvent(ctx, tx, [order.sellerId, order.buyerId], "purchase.completed", {
    order: {
      id: toId("ord", order.id),
      productId: toId("prod", order.productId),
      buyerId: toUserId(order.buyerId),
      amount: toDecimal(order.totalMinor, order.currency),
      currency: order.currency,
    },
  });

const notifySeller = async (ctx: Context, tx: Tx, order: OrderRow) =>
  notifyAccount(ctx, tx, {
    userId: order.sellerId,
    kind: "sale.completed",
    subjectId: toId("ord", order.id),
    actorId: order.buyerId,
    data: {
      product: order.productTitle,
      amount: formatMoneyWithSymbol(order.totalMinor, order.currency),
    },
  });

const maturityDate = ({ refundDays }: OrderRow, now: Date) =>
  daysAfter(now, Math.max(MATURES_AFTER_DAYS, refundDays));

async function refundUnusablePayment(ctx: Context, tx: Tx, order: OrderRow): Promise<string> {
  const now = ctx.now();
  const maturesAt = maturityDate(order, now);
  await postSale(ctx, tx, { ...order, maturesAt }, now);
  const refundId = await createAutomaticRefund(ctx, tx, { ...order, completedAt: now, maturesAt });
  await completeWithReceipt(ctx, tx, order, now, maturesAt);
  return refundId;
}

/** Starts last: other sales of the seller wait for the receipt counter until this transaction commits. */
async function completeWithReceipt(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  now: Date,
  maturesAt: Date,
): Promise<OrderRow> {
  const { paymentId, paymentMethod, processorFeeMinor } = order;
  const payment = paymentId !== null && {
    paymentId,
    paymentMethod: JSON.stringify(paymentMethod),
    processorFeeMinor,
  };
  const completion = await completeOrderRow(tx, order, { ...payment, completedAt: now, maturesAt });
  failPoint(ctx, "order: settling");
  return { ...order, ...completion };
}
