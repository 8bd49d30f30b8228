import type { ApprovalReason, Refundable, RefundObstacle } from "@stoa/contract";
import { findEntitlementOfOrder } from "../../catalog/entitlements/entitlements.ts";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { OrderRow } from "../orders/queries.ts";
import { isPaid, type PaidOrder, remainingOf } from "./giving-back.ts";
import { findAutomaticRefunds, findOpenRefund } from "./refund-queries.ts";

/** So long after the last refund that nobody was asked for comes the next one: the first, the second … and all after the last. */
const BETWEEN_AUTOMATIC_DAYS = [0, 30, 90, 180] as const;

/** The end of the window that the seller's policy gave when it was bought. */
const windowEnd = ({ completedAt, refundDays }: PaidOrder) => daysAfter(completedAt, refundDays);

/** Why nobody can give money of an order back now, neither at a buyer's wish nor unasked. */
function obstacleOf(order: OrderRow): RefundObstacle | null {
  if (order.status === "disputed") return "disputed";
  if (!isPaid(order)) return "not_completed";
  if (order.totalMinor === 0n) return "free_copy";
  return order.refundedMinor === order.totalMinor ? "already_refunded" : null;
}

const buyersObstacle = (ctx: Context, order: OrderRow, openId: string | undefined): RefundObstacle | null =>
  obstacleOf(order) ??
  (openId ? "refund_open" : null) ??
  (isPaid(order) && ctx.now() > windowEnd(order) ? "refund_window_expired" : null);

/** What a purchase says of it. */
export async function refundableOf(ctx: Context, order: OrderRow): Promise<Refundable> {
  const open = await findOpenRefund(ctx.db, order.id);
  const reasonIfNot = buyersObstacle(ctx, order, open?.id);
  const approval = reasonIfNot ? null : await approvalOf(ctx, ctx.db, order);
  const instantFrom = approval?.instantFrom ?? null;
  return {
    until: isPaid(order) ? windowEnd(order).toISOString() : null,
    amount: reasonIfNot ? 0 : toDecimal(remainingOf(order), order.currency),
    reasonIfNot,
    approval: approval && (approval.reason === "unused" ? "instant" : "seller"),
    approvalReason: approval?.reason ?? null,
    instantFrom:
      instantFrom && instantFrom <= windowEnd(order as PaidOrder) ? instantFrom.toISOString() : null,
  };
}

interface Approval {
  reason: ApprovalReason;
  /** From when the rules would approve it at once; null: they do, or never will. */
  instantFrom: Date | null;
}

/** Who would approve a request now, and why. Inside a transaction, the buyer's account and the use are locked. */
export async function approvalOf(ctx: Context, db: Queries, order: OrderRow): Promise<Approval> {
  const entitlement = await findEntitlementOfOrder(db, order.id);
  if (entitlement?.usedAt != null) return { reason: "used", instantFrom: null };
  const from = await instantRefundsFrom(db, order.buyerId);
  return from && ctx.now() < from
    ? { reason: "recent_instant_refund", instantFrom: from }
    : { reason: "unused", instantFrom: null };
}

const inState = (order: OrderRow, message: string) =>
  new ApiError("INVALID_STATE", message, {
    current: order.status,
    allowed: ["completed", "partially_refunded"],
  });

const refusals: Record<RefundObstacle, (order: OrderRow, openId: string) => ApiError> = {
  not_completed: (order) => inState(order, "Only a completed purchase can be refunded."),
  disputed: (order) => inState(order, "Its payment is disputed at the bank, which decides about the money."),
  free_copy: () => ruleViolation("orderId", "was free: there is nothing to give back"),
  already_refunded: () => new ApiError("ALREADY_REFUNDED"),
  refund_open: (_order, openId) =>
    new ApiError("CONFLICT", "A refund of this purchase is open: wait for it, or cancel it.", {
      refundId: toId("refund", openId),
    }),
  refund_window_expired: (order) => {
    const until = windowEnd(order as PaidOrder).toISOString();
    const problem = { field: "orderId", reason: "refund_window_expired" };
    return new ApiError(
      "VALIDATION_ERROR",
      `orderId: its refund window ended at ${until}. Write to the seller.`,
      {
        ...problem,
        until,
        errors: [problem],
      },
    );
  },
};

/** Throws unless its buyer may ask for the money of a locked order back. */
export async function mustBeRefundable(ctx: Context, tx: Tx, order: OrderRow): Promise<PaidOrder> {
  const open = await findOpenRefund(tx, order.id);
  const obstacle = buyersObstacle(ctx, order, open?.id);
  if (obstacle) throw refusals[obstacle](order, open?.id ?? "");
  return order as PaidOrder;
}

/** Throws unless something of a locked order can be given back unasked, at whatever time. */
export function mustBeGivable(order: OrderRow): PaidOrder {
  const obstacle = obstacleOf(order);
  if (obstacle) throw refusals[obstacle](order, "");
  return order as PaidOrder;
}

/** A buyer who often returns what they never used must ask the seller. null: they had no refund at once yet. */
async function instantRefundsFrom(db: Queries, buyerId: string): Promise<Date | null> {
  const { count, last } = await findAutomaticRefunds(db, buyerId);
  const days = BETWEEN_AUTOMATIC_DAYS[Math.min(count, BETWEEN_AUTOMATIC_DAYS.length - 1)]!;
  return last && daysAfter(last, days);
}
