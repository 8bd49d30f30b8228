import type { OrderStatus } from "@stoa/contract";
import { holdUse, resumeUse, revokeUse } from "../../catalog/entitlements/entitlements.ts";
import { leaveOutReviewOf } from "../../catalog/reviews/rating.ts";
import { uncountSale } from "../../catalog/search/stats.ts";
import type { Tx } from "../../platform/db/database.ts";
import { moveOrder, type OrderRow } from "../orders/queries.ts";

/** An order whose money came, whatever became of it since. */
export type PaidOrder = OrderRow & { completedAt: Date; maturesAt: Date };

export const isPaid = (order: OrderRow): order is PaidOrder => order.completedAt !== null;

/** What can still be given back: neither refunded nor on its way. */
export const remainingOf = (order: Pick<OrderRow, "totalMinor" | "refundedMinor" | "refundingMinor">) =>
  order.totalMinor - order.refundedMinor - order.refundingMinor;

/** How a paid order stands that nobody disputes. */
export function statusByMoney({ refundedMinor, totalMinor }: PaidOrder): OrderStatus {
  if (refundedMinor === 0n) return "completed";
  return refundedMinor === totalMinor ? "refunded" : "partially_refunded";
}

/** Sets an amount aside for a refund, or below zero takes it back from one. The order is locked. */
export async function setAside(tx: Tx, order: PaidOrder, amountMinor: bigint): Promise<PaidOrder> {
  const after = { ...order, refundingMinor: order.refundingMinor + amountMinor };
  await moveOrder(tx, order.id, { refunding_minor: after.refundingMinor });
  await keepInUse(tx, after);
  return after;
}

/** Notes what is back with the buyer for good, and with the last of it takes the product. The order is locked. */
export async function noteGivenBack(tx: Tx, order: PaidOrder, amountMinor: bigint): Promise<PaidOrder> {
  const given = { ...order, refundedMinor: order.refundedMinor + amountMinor };
  const status = order.status === "disputed" ? order.status : statusByMoney(given);
  await keepInUse(tx, given);
  // After the product's counters, as a sale does: the status moves the count of a discount code.
  await moveOrder(tx, order.id, { refunded_minor: given.refundedMinor, status });
  return { ...given, status };
}

/** All of the money given back ends the use, all of it on its way holds it up, and anything less leaves it. */
async function keepInUse(tx: Tx, order: PaidOrder): Promise<void> {
  if (order.refundedMinor === order.totalMinor) await takeUseBack(tx, order);
  else if (remainingOf(order) === 0n) await holdUse(tx, order.id);
  else await resumeUse(tx, order.id);
}

/** As if it had never been sold. An order that gave no use takes none: its buyer may have the product by another. */
async function takeUseBack(tx: Tx, order: PaidOrder): Promise<void> {
  if (!(await revokeUse(tx, order.id))) return;
  await leaveOutReviewOf(tx, order.buyerId, order.productId);
  await uncountSale(tx, order.productId, order.completedAt);
}
