import { toVisibleLine } from "@stoa/contract";
import { findAccount } from "../../accounts/people/accounts.ts";
import { toUserId } from "../../accounts/people/users.ts";
import { findLiveEntitlement, grantUse } from "../../catalog/entitlements/entitlements.ts";
import { isTakenFromBuyers } from "../../catalog/products/goods.ts";
import { countReviewAgainOf } from "../../catalog/reviews/rating.ts";
import { countSale } from "../../catalog/search/stats.ts";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Tx } from "../../platform/db/database.ts";
import { attemptsOf, type Paid, type Settlement, standingBy } from "../charges/attempts.ts";
import { bookSale } from "../orders/books.ts";
import {
  deleteOpenOrder,
  findOrder,
  listGivenUpOrders,
  listOpenOrders,
  lockOrder,
  moveOrder,
  noteOrderMismatch,
  OPEN,
  type OrderRow,
  stampAsked,
  stampAskedAfter,
  takeReceiptNumber,
} from "../orders/queries.ts";
import { carryOut, returnPayment } from "../refunds/refund-payment.ts";

/** Never shorter, because a charge may be disputed early; the refund window where that is longer. */
const MATURES_AFTER_DAYS = 7;

export const isOpen = (order: Pick<OrderRow, "status">) => OPEN.includes(order.status);

const attempts = attemptsOf<OrderRow>({
  noun: "order",
  providersId: (id) => toId("ord", id),
  requestOf: (order) => ({
    orderId: toId("ord", order.id),
    amountMinor: order.totalMinor,
    currency: order.currency,
    methodId: order.paymentMethodId!,
    userId: toUserId(order.buyerId),
    description: toVisibleLine(order.productTitle),
    buyer: "present",
    recurs: false,
  }),
  isOpen,
  // Money may come for an order that was given up.
  isFinal: (order) => !isOpen(order) && order.status !== "canceled",
  find: findOrder,
  listOpen: listOpenOrders,
  stampAsked,
  deleteOpen: deleteOpenOrder,
  settle,
  abandon: (ctx, id) =>
    ctx.db.transaction().execute(async (tx) => {
      const order = await lockOrder(tx, id);
      if (order && isOpen(order)) await moveOrder(tx, id, { status: "canceled" });
    }),
  noteMismatch: noteOrderMismatch,
  listGivenUp: listGivenUpOrders,
  stampAskedAfter,
});

export const { charge, refresh, reconcile: reconcileOrders } = attempts;

/** The provider says that something changed of a charge; when it is for an order, asks what. */
export async function hearOfOrder(ctx: Context, orderId: string): Promise<void> {
  const id = toUuid("ord", orderId);
  if (id) await attempts.hear(ctx, id);
}

/** Gives an open order up for another one; false when the provider cannot tell, so that it must stay. */
export const replaceOpenOrder = async (ctx: Context, order: OrderRow): Promise<boolean> =>
  !isOpen(await attempts.giveUp(ctx, order));

/** Moves an open order to what the provider says; one that is settled already stays as it is. */
export async function settle(ctx: Context, orderId: string, settlement: Settlement): Promise<OrderRow> {
  const returned = await ctx.db.transaction().execute(async (tx) => {
    const order = await lockOrder(tx, orderId);
    if (!order) throw new ApiError("ORDER_NOT_FOUND");
    if (!isOpen(order) && order.status !== "canceled") return null;
    if (settlement.state === "succeeded") return takePayment(ctx, tx, order, settlement);
    if (isOpen(order)) await moveOrder(tx, order.id, standingBy(settlement));
    return null;
  });
  if (returned) await carryOut(ctx, returned);
  return (await findOrder(ctx.db, orderId))!;
}

/**
 * The buyer gets what was paid for, also when we had given the order up; or the money back, whose refund is answered, if they have the
 * product by another order already, or if they or its seller are gone, or if moderators took it from its buyers.
 */
async function takePayment(ctx: Context, tx: Tx, order: OrderRow, settlement: Paid): Promise<string | null> {
  const paid = await notePaid(tx, order, settlement);
  if (!(await canUse(tx, order))) return takeInVain(ctx, tx, paid);
  await complete(ctx, tx, paid);
  return null;
}

const isGone = async (tx: Tx, userId: string): Promise<boolean> =>
  Boolean((await findAccount(tx, userId))?.closedAt);

async function canUse(tx: Tx, { buyerId, sellerId, productId }: OrderRow): Promise<boolean> {
  if (await findLiveEntitlement(tx, buyerId, productId)) return false;
  if (await isTakenFromBuyers(tx, productId)) return false;
  return !(await isGone(tx, buyerId)) && !(await isGone(tx, sellerId));
}

async function notePaid(tx: Tx, order: OrderRow, { paymentId, method, feeMinor }: Paid): Promise<OrderRow> {
  await moveOrder(tx, order.id, {
    payment_id: paymentId,
    payment_method: JSON.stringify(method),
    processor_fee_minor: feeMinor,
  });
  return { ...order, paymentId, paymentMethod: method, processorFeeMinor: feeMinor };
}

/**
 * The money is there, or none was needed: the buyer may use the product, the books and counters move and both sides are told,
 * all at once.
 */
export async function complete(ctx: Context, tx: Tx, order: OrderRow): Promise<void> {
  const now = ctx.now();
  const maturesAt = maturityOf(order, now);
  await grantUse(ctx, tx, {
    id: order.id,
    buyerId: order.buyerId,
    productId: order.productId,
    version: order.productVersion,
  });
  // Of an earlier purchase, which was refunded.
  await countReviewAgainOf(tx, order.buyerId, order.productId);
  await bookSale(ctx, tx, { ...order, maturesAt }, now);
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
  await closeWithReceipt(ctx, tx, order, now, maturesAt);
}

const maturityOf = ({ refundDays }: OrderRow, now: Date) =>
  daysAfter(now, Math.max(MATURES_AFTER_DAYS, refundDays));

/** The money came for what its buyer has already, or cannot use: it is booked, and goes back by itself. Answers its refund. */
async function takeInVain(ctx: Context, tx: Tx, order: OrderRow): Promise<string> {
  const now = ctx.now();
  const maturesAt = maturityOf(order, now);
  await bookSale(ctx, tx, { ...order, maturesAt }, now);
  const refundId = await returnPayment(ctx, tx, { ...order, completedAt: now, maturesAt });
  await closeWithReceipt(ctx, tx, order, now, maturesAt);
  return refundId;
}

/** Last, because the seller's other sales wait for their numbers until this one is committed. */
async function closeWithReceipt(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  now: Date,
  maturesAt: Date,
): Promise<void> {
  const receipt = await takeReceiptNumber(tx, order.sellerId, now.getUTCFullYear());
  await moveOrder(tx, order.id, {
    status: "completed",
    completed_at: now,
    matures_at: maturesAt,
    action_url: null,
    receipt_year: now.getUTCFullYear(),
    receipt_number: receipt,
  });
  failPoint(ctx, "order: settling");
}
