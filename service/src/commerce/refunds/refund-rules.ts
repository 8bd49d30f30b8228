import type { ApprovalReason, Refundable, RefundObstacle } from "@stoa/contract";
import { findEntitlementByOrder } from "../../catalog/entitlements/entitlements.ts";
import type { Context } from "../../core/context.ts";
import { daysAfter } from "../../core/dates.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { lastOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { OrderRow } from "../orders/queries.ts";
import { findAutomaticRefunds, findOpenRefund, refundsFailedRuns } from "./refund-queries.ts";
import { isPaidOrder, type PaidOrder, remainingAmount } from "./refund-settlement.ts";
import { failsMoreOften, type RunFailures } from "./run-failures.ts";

/** Indexed by the number of earlier instant refunds; the last value applies to all further ones. */
const DAYS_BETWEEN_INSTANT_REFUNDS = [0, 30, 90, 180] as const;

/** By the policy at the time of the purchase. */
const windowEnd = ({ completedAt, refundDays }: PaidOrder) => daysAfter(completedAt, refundDays);

function obstacleOf(order: OrderRow): RefundObstacle | null {
  if (order.status === "disputed") return "disputed";
  if (!isPaidOrder(order)) return "not_completed";
  if (order.totalMinor === 0n) return "free_copy";
  return order.refundedMinor === order.totalMinor ? "already_refunded" : null;
}

const buyerObstacle = (ctx: Context, order: OrderRow, openId: string | undefined): RefundObstacle | null =>
  obstacleOf(order) ??
  (openId ? "refund_open" : null) ??
  (isPaidOrder(order) && ctx.now() > windowEnd(order) ? "refund_window_expired" : null);

export async function readRefundable(ctx: Context, order: OrderRow): Promise<Refundable> {
  const open = await findOpenRefund(ctx.db, order.id);
  const reasonIfNot = buyerObstacle(ctx, order, open?.id);
  const approval = reasonIfNot ? null : await decideApproval(ctx, ctx.db, order);
  const instantFrom = approval?.instantFrom ?? null;
  return {
    until: isPaidOrder(order) ? windowEnd(order).toISOString() : null,
    amount: reasonIfNot ? 0 : toDecimal(remainingAmount(order), order.currency),
    reasonIfNot,
    approval: approval && (isInstant(approval.reason) ? "instant" : "seller"),
    approvalReason: approval?.reason ?? null,
    instantFrom:
      instantFrom && instantFrom <= windowEnd(order as PaidOrder) ? instantFrom.toISOString() : null,
  };
}

export interface Approval {
  reason: ApprovalReason;
  /** When the next instant refund is possible; null: now or never. */
  instantFrom: Date | null;
  /** The runs of a product that was used; null: never used. */
  runs: RunFailures | null;
}

/** The rules approve it. */
export const isInstant = (reason: ApprovalReason): boolean => reason === "unused" || reason === "failed_runs";

/** In a transaction, the caller has locked the buyer's account and the entitlement. */
export async function decideApproval(ctx: Context, db: Queries, order: OrderRow): Promise<Approval> {
  const entitlement = await findEntitlementByOrder(db, order.id);
  const isUsed = entitlement?.usedAt != null;
  const runs = isUsed ? await countFailures(ctx, db, order) : null;
  const isQualityCase =
    runs !== null && failsMoreOften(runs) && (await refundsFailedRuns(db, order.sellerId));
  if (isUsed && !isQualityCase) return { reason: "used", instantFrom: null, runs };
  const from = await instantRefundsFrom(db, order.buyerId);
  if (from && ctx.now() < from)
    return { reason: isUsed ? "used" : "recent_instant_refund", instantFrom: isUsed ? null : from, runs };
  return { reason: isUsed ? "failed_runs" : "unused", instantFrom: null, runs };
}

const COMPARED_DAYS = 90;

const countFailures = (ctx: Context, db: Queries, { productId, buyerId, sellerId, createdAt }: OrderRow) =>
  ctx.countRunFailures(db, {
    productId,
    buyerId,
    sellerId,
    boughtAt: createdAt,
    since: daysAfter(ctx.now(), -COMPARED_DAYS),
  });

const invalidStateError = (order: OrderRow, message: string) =>
  new ApiError("INVALID_STATE", message, {
    current: order.status,
    allowed: ["completed", "partially_refunded"],
  });

const obstacleErrors: Record<RefundObstacle, (order: OrderRow, openId: string) => ApiError> = {
  not_completed: (order) => invalidStateError(order, "Only a completed purchase can be refunded."),
  disputed: (order) =>
    invalidStateError(order, "Its payment is disputed at the bank, which decides about the money."),
  free_copy: () => ruleViolation("orderId", "was free: there is nothing to refund"),
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

/** The order is locked. */
export async function mustBeRefundable(ctx: Context, tx: Tx, order: OrderRow): Promise<PaidOrder> {
  const open = await findOpenRefund(tx, order.id);
  const obstacle = buyerObstacle(ctx, order, open?.id);
  if (obstacle) throw obstacleErrors[obstacle](order, open?.id ?? "");
  return order as PaidOrder;
}

/** Has no deadline. The order is locked. */
export function mustBeRefundableByAdmin(order: OrderRow): PaidOrder {
  const obstacle = obstacleOf(order);
  if (obstacle) throw obstacleErrors[obstacle](order, "");
  return order as PaidOrder;
}

/** Buyers who often return unused products must ask the seller. null: no instant refund yet. */
async function instantRefundsFrom(db: Queries, buyerId: string): Promise<Date | null> {
  const { count, last } = await findAutomaticRefunds(db, buyerId);
  const days = DAYS_BETWEEN_INSTANT_REFUNDS[count] ?? lastOf(DAYS_BETWEEN_INSTANT_REFUNDS);
  return last && daysAfter(last, days);
}
