import { toVisibleLine } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { findAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { findLiveEntitlement, grantEntitlement } from "../../catalog/entitlements/entitlements.ts";
import { isWithheldFromBuyers } from "../../catalog/products/product-lookup.ts";
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
import { isChargeOpen } from "../charges/charge-queries.ts";
import { type ChargeTarget, type Paid, type Settlement, toUnpaidChange } from "../charges/charges.ts";
import { postSale } from "../orders/order-postings.ts";
import { findOrder, lockOrder, nextReceiptNumber, type OrderRow, updateOrder } from "../orders/queries.ts";
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
  const refundId = await ctx.db.transaction().execute(async (tx) => {
    const order = await lockOrder(tx, orderId);
    if (!order) throw new ApiError("ORDER_NOT_FOUND");
    if (!isChargeOpen(order) && order.status !== "canceled") return null;
    if (settlement.state === "succeeded") return applyPayment(ctx, tx, order, settlement);
    if (isChargeOpen(order)) await updateOrder(tx, order.id, toUnpaidChange(settlement));
    return null;
  });
  if (refundId) await submitRefund(ctx, refundId);
  return required(await findOrder(ctx.db, orderId), "the order");
}

/** A late payment also completes a canceled order. Returns a refund's id if the buyer cannot use the product. */
async function applyPayment(ctx: Context, tx: Tx, order: OrderRow, settlement: Paid): Promise<string | null> {
  const paid = await recordPayment(tx, order, settlement);
  if (!(await canUseProduct(tx, order))) return refundUnusablePayment(ctx, tx, paid);
  await completeOrder(ctx, tx, paid);
  return null;
}

const isAccountClosed = async (tx: Tx, userId: string): Promise<boolean> =>
  Boolean((await findAccount(tx, userId))?.closedAt);

async function canUseProduct(tx: Tx, { buyerId, sellerId, productId }: OrderRow): Promise<boolean> {
  if (await findLiveEntitlement(tx, buyerId, productId)) return false;
  if (await isWithheldFromBuyers(tx, productId)) return false;
  return !(await isAccountClosed(tx, buyerId)) && !(await isAccountClosed(tx, sellerId));
}

async function recordPayment(
  tx: Tx,
  order: OrderRow,
  { paymentId, method, feeMinor }: Paid,
): Promise<OrderRow> {
  await updateOrder(tx, order.id, {
    paymentId,
    paymentMethod: JSON.stringify(method),
    processorFeeMinor: feeMinor,
  });
  return { ...order, paymentId, paymentMethod: method, processorFeeMinor: feeMinor };
}

/** Runs in the transaction that records the payment or the free order. */
export async function completeOrder(ctx: Context, tx: Tx, order: OrderRow): Promise<void> {
  const now = ctx.now();
  const maturesAt = maturityDate(order, now);
  await grantEntitlement(ctx, tx, {
    id: order.id,
    buyerId: order.buyerId,
    productId: order.productId,
    version: order.productVersion,
  });
  // The buyer may have reviewed the product after an earlier purchase, which was refunded.
  await includeReviewInRating(tx, order.buyerId, order.productId);
  await postSale(ctx, tx, { ...order, maturesAt }, now);
  await countSale(tx, order.productId, now);
  await publishEvent(ctx, tx, [order.sellerId, order.buyerId], "purchase.completed", {
    order: {
      id: toId("ord", order.id),
      productId: toId("prod", order.productId),
      buyerId: toUserId(order.buyerId),
      amount: toDecimal(order.totalMinor, order.currency),
      currency: order.currency,
    },
  });
  await notifyAccount(ctx, tx, {
    userId: order.sellerId,
    kind: "sale.completed",
    subjectId: toId("ord", order.id),
    actorId: order.buyerId,
    data: {
      product: order.productTitle,
      amount: formatMoneyWithSymbol(order.totalMinor, order.currency),
    },
  });
  await completeWithReceipt(ctx, tx, order, now, maturesAt);
}

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

/** Runs last: other sales of the seller wait for the receipt counter until this transaction commits. */
async function completeWithReceipt(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  now: Date,
  maturesAt: Date,
): Promise<void> {
  const receipt = await nextReceiptNumber(tx, order.sellerId, now.getUTCFullYear());
  await updateOrder(tx, order.id, {
    status: "completed",
    completedAt: now,
    maturesAt,
    actionUrl: null,
    receiptYear: now.getUTCFullYear(),
    receiptNumber: receipt,
  });
  failPoint(ctx, "order: settling");
}
