import type { OrderStatus } from "@stoa/contract";
import {
  holdEntitlement,
  resumeEntitlement,
  revokeEntitlement,
} from "../../catalog/entitlements/entitlements.ts";
import { excludeReviewFromRating } from "../../catalog/reviews/rating.ts";
import { uncountSale } from "../../catalog/search/product-stats.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type OrderRow, updateOrder } from "../orders/queries.ts";

/** An order whose money came, whatever became of it since. */
export type PaidOrder = OrderRow & { completedAt: Date; maturesAt: Date };

export const isPaidOrder = (order: OrderRow): order is PaidOrder => order.completedAt !== null;

/** What can still be given back: neither refunded nor on its way. */
export const remainingAmount = (order: Pick<OrderRow, "totalMinor" | "refundedMinor" | "refundingMinor">) =>
  order.totalMinor - order.refundedMinor - order.refundingMinor;

/** For an order without an open dispute. */
export function paidOrderStatus({ refundedMinor, totalMinor }: PaidOrder): OrderStatus {
  if (refundedMinor === 0n) return "completed";
  return refundedMinor === totalMinor ? "refunded" : "partially_refunded";
}

/** Sets an amount aside for a refund, or below zero takes it back from one. The order is locked. */
export async function reserveRefund(tx: Tx, order: PaidOrder, amountMinor: bigint): Promise<PaidOrder> {
  const after = { ...order, refundingMinor: order.refundingMinor + amountMinor };
  await updateOrder(tx, order.id, { refundingMinor: after.refundingMinor });
  await updateEntitlement(tx, after);
  return after;
}

/** Notes what is back with the buyer for good, and with the last of it takes the product. The order is locked. */
export async function recordRefunded(tx: Tx, order: PaidOrder, amountMinor: bigint): Promise<PaidOrder> {
  const given = { ...order, refundedMinor: order.refundedMinor + amountMinor };
  const status = order.status === "disputed" ? order.status : paidOrderStatus(given);
  await updateEntitlement(tx, given);
  // After the product's counters, as a sale does: the status moves the count of a discount code.
  await updateOrder(tx, order.id, { refundedMinor: given.refundedMinor, status });
  return { ...given, status };
}

/** All of the money given back ends the use, all of it on its way holds it up, and anything less leaves it. */
async function updateEntitlement(tx: Tx, order: PaidOrder): Promise<void> {
  if (order.refundedMinor === order.totalMinor) await revokeAccess(tx, order);
  else if (remainingAmount(order) === 0n) await holdEntitlement(tx, order.id);
  else await resumeEntitlement(tx, order.id);
}

/** As if it had never been sold. An order that gave no use takes none: its buyer may have the product by another. */
async function revokeAccess(tx: Tx, order: PaidOrder): Promise<void> {
  if (!(await revokeEntitlement(tx, order.id))) return;
  await excludeReviewFromRating(tx, order.buyerId, order.productId);
  await uncountSale(tx, order.productId, order.completedAt);
}
