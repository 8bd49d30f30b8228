import { toVisibleLine } from "@stoa/contract";
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
import { toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Tx } from "../../platform/db/database.ts";
import {
  createChargeAttempts,
  type Paid,
  type Settlement,
  toUnpaidChange,
} from "../charges/charge-attempts.ts";
import { postSale } from "../orders/order-postings.ts";
import {
  deleteOpenOrder,
  findOrder,
  listOpenOrders,
  listOrdersPossiblyChargedLate,
  lockOrder,
  markOrderAsked,
  markOrderCheckedLate,
  nextReceiptNumber,
  OPEN_ORDER_STATUSES,
  type OrderRow,
  recordOrderMismatch,
  updateOrder,
} from "../orders/queries.ts";
import { createAutomaticRefund, submitRefund } from "../refunds/refund-submission.ts";

/** Never shorter, because a charge may be disputed early; the refund window where that is longer. */
const MATURES_AFTER_DAYS = 7;

export const isOrderOpen = (order: Pick<OrderRow, "status">) => OPEN_ORDER_STATUSES.includes(order.status);

const attempts = createChargeAttempts<OrderRow>({
  noun: "order",
  providerReference: (id) => toId("ord", id),
  requestOf: (order) => ({
    orderId: toId("ord", order.id),
    amountMinor: order.totalMinor,
    currency: order.currency,
    methodId: required(order.paymentMethodId, "the payment method of an order"),
    userId: toUserId(order.buyerId),
    description: toVisibleLine(order.productTitle),
    buyer: "present",
    recurs: false,
  }),
  isOpen: isOrderOpen,
  // Money may come for an order that was given up.
  isFinal: (order) => !isOrderOpen(order) && order.status !== "canceled",
  find: findOrder,
  listOpen: listOpenOrders,
  markAsked: markOrderAsked,
  deleteOpen: deleteOpenOrder,
  settle: settleOrder,
  abandon: (ctx, id) =>
    ctx.db.transaction().execute(async (tx) => {
      const order = await lockOrder(tx, id);
      if (order && isOrderOpen(order)) await updateOrder(tx, id, { status: "canceled" });
    }),
  recordMismatch: recordOrderMismatch,
  listPossiblyChargedLate: listOrdersPossiblyChargedLate,
  markCheckedLate: markOrderCheckedLate,
});

export const { charge: chargeOrder, refresh: refreshOrder, reconcile: reconcileOrders } = attempts;

/** The provider says that something changed of a charge; when it is for an order, asks what. */
export async function syncOrderFromProvider(ctx: Context, orderId: string): Promise<void> {
  const id = toUuid("ord", orderId);
  if (id) await attempts.syncFromProvider(ctx, id);
}

/** Gives an open order up for another one; false when the provider cannot tell, so that it must stay. */
export const cancelOpenOrder = async (ctx: Context, order: OrderRow): Promise<boolean> =>
  !isOrderOpen(await attempts.cancel(ctx, order));

/** Moves an open order to what the provider says; one that is settled already stays as it is. */
export async function settleOrder(ctx: Context, orderId: string, settlement: Settlement): Promise<OrderRow> {
  const returned = await ctx.db.transaction().execute(async (tx) => {
    const order = await lockOrder(tx, orderId);
    if (!order) throw new ApiError("ORDER_NOT_FOUND");
    if (!isOrderOpen(order) && order.status !== "canceled") return null;
    if (settlement.state === "succeeded") return applyPayment(ctx, tx, order, settlement);
    if (isOrderOpen(order)) await updateOrder(tx, order.id, toUnpaidChange(settlement));
    return null;
  });
  if (returned) await submitRefund(ctx, returned);
  return required(await findOrder(ctx.db, orderId), "the order");
}

/**
 * The buyer gets what was paid for, also when we had given the order up; or the money back, whose refund is answered, if they have the
 * product by another order already, or if they or its seller are gone, or if moderators took it from its buyers.
 */
async function applyPayment(ctx: Context, tx: Tx, order: OrderRow, settlement: Paid): Promise<string | null> {
  const paid = await recordPayment(tx, order, settlement);
  if (!(await canUseProduct(tx, order))) return refundUnusablePayment(ctx, tx, paid);
  await completeOrder(ctx, tx, paid);
  return null;
}

const isGone = async (tx: Tx, userId: string): Promise<boolean> =>
  Boolean((await findAccount(tx, userId))?.closedAt);

async function canUseProduct(tx: Tx, { buyerId, sellerId, productId }: OrderRow): Promise<boolean> {
  if (await findLiveEntitlement(tx, buyerId, productId)) return false;
  if (await isWithheldFromBuyers(tx, productId)) return false;
  return !(await isGone(tx, buyerId)) && !(await isGone(tx, sellerId));
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

/**
 * The money is there, or none was needed: the buyer may use the product, the books and counters move and both sides are told,
 * all at once.
 */
export async function completeOrder(ctx: Context, tx: Tx, order: OrderRow): Promise<void> {
  const now = ctx.now();
  const maturesAt = maturityDate(order, now);
  await grantEntitlement(ctx, tx, {
    id: order.id,
    buyerId: order.buyerId,
    productId: order.productId,
    version: order.productVersion,
  });
  // Of an earlier purchase, which was refunded.
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
  await completeWithReceipt(ctx, tx, order, now, maturesAt);
}

const maturityDate = ({ refundDays }: OrderRow, now: Date) =>
  daysAfter(now, Math.max(MATURES_AFTER_DAYS, refundDays));

/** Posts the sale and refunds it: the buyer owns the product already, or cannot use it. */
async function refundUnusablePayment(ctx: Context, tx: Tx, order: OrderRow): Promise<string> {
  const now = ctx.now();
  const maturesAt = maturityDate(order, now);
  await postSale(ctx, tx, { ...order, maturesAt }, now);
  const refundId = await createAutomaticRefund(ctx, tx, { ...order, completedAt: now, maturesAt });
  await completeWithReceipt(ctx, tx, order, now, maturesAt);
  return refundId;
}

/** Last: other sales of the seller wait for the counter until this transaction commits. */
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
