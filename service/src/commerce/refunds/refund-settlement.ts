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

/** Includes orders that were refunded or disputed later. */
export type PaidOrder = OrderRow & { completedAt: Date; maturesAt: Date };

export const isPaidOrder = (order: OrderRow): order is PaidOrder => order.completedAt !== null;

/** Neither refunded nor reserved. */
export const remainingAmount = (order: Pick<OrderRow, "totalMinor" | "refundedMinor" | "refundingMinor">) =>
  order.totalMinor - order.refundedMinor - order.refundingMinor;

/** For an order without an open dispute. */
export function paidOrderStatus({ refundedMinor, totalMinor }: PaidOrder): OrderStatus {
  if (refundedMinor === 0n) return "completed";
  return refundedMinor === totalMinor ? "refunded" : "partially_refunded";
}

/** A negative amount releases the reservation. The order is locked. */
export async function reserveRefund(tx: Tx, order: PaidOrder, amountMinor: bigint): Promise<PaidOrder> {
  const after = { ...order, refundingMinor: order.refundingMinor + amountMinor };
  await updateOrder(tx, order.id, { refundingMinor: after.refundingMinor });
  await updateEntitlement(tx, after);
  return after;
}

/** The order is locked. */
export async function recordRefunded(tx: Tx, order: PaidOrder, amountMinor: bigint): Promise<PaidOrder> {
  const after = { ...order, refundedMinor: order.refundedMinor + amountMinor };
  const status = order.status === "disputed" ? order.status : paidOrderStatus(after);
  await updateEntitlement(tx, after);
  // After the product's counters, in the lock order of a sale: the status changes the count of a discount code.
  await updateOrder(tx, order.id, { refundedMinor: after.refundedMinor, status });
  return { ...after, status };
}

async function updateEntitlement(tx: Tx, order: PaidOrder): Promise<void> {
  if (order.refundedMinor === order.totalMinor) await revokeAccess(tx, order);
  else if (remainingAmount(order) === 0n) await holdEntitlement(tx, order.id);
  else await resumeEntitlement(tx, order.id);
}

/** Reverses the counters of the sale. An order without an entitlement revokes none: the buyer may own the product by another order. */
async function revokeAccess(tx: Tx, order: PaidOrder): Promise<void> {
  if (!(await revokeEntitlement(tx, order.id))) return;
  await excludeReviewFromRating(tx, order.buyerId, order.productId);
  await uncountSale(tx, order.productId, order.completedAt);
}
