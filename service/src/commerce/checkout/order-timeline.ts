import type { OrderEvent, PurchaseDetail } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import type { OrderRow } from "../orders/queries.ts";
import { type DisputeRow, listDisputesOfOrder } from "../refunds/dispute-queries.ts";
import { listRefundsOfOrder, type RefundRow } from "../refunds/refund-queries.ts";
import { readRefundable } from "../refunds/refund-rules.ts";
import { toRefund } from "../refunds/refunds.ts";

export async function orderTimeline(
  ctx: Context,
  order: OrderRow,
): Promise<Pick<PurchaseDetail, "refundable" | "refunds" | "events">> {
  const refunds = await listRefundsOfOrder(ctx.db, order.id);
  const disputes = await listDisputesOfOrder(ctx.db, order.id);
  return {
    refundable: await readRefundable(ctx, order),
    refunds: refunds.map(toRefund),
    events: listOrderEvents(order, refunds.toReversed(), disputes),
  };
}

/** By time; events of one moment in the order of cause and effect. */
function listOrderEvents(order: OrderRow, refunds: RefundRow[], disputes: DisputeRow[]): OrderEvent[] {
  const event = (
    type: OrderEvent["type"],
    at: Date | null,
    minor: bigint,
    refundId?: string,
  ): OrderEvent[] =>
    at === null
      ? []
      : [
          {
            type,
            at: at.toISOString(),
            amount: toDecimal(minor, order.currency),
            ...(refundId && { refundId: toId("refund", refundId) }),
          },
        ];
  const events = [
    ...event("purchase.created", order.createdAt, order.totalMinor),
    ...event("purchase.completed", order.completedAt, order.totalMinor),
    ...refunds.flatMap((refund) => {
      const { id, amountMinor, status, origin, createdAt, decidedAt, completedAt } = refund;
      const isApproved = decidedAt !== null && status !== "rejected";
      return [
        ...(origin === "buyer" ? event("refund.requested", createdAt, amountMinor, id) : []),
        ...(isApproved ? event("refund.approved", decidedAt, amountMinor, id) : []),
        ...event(`refund.${status}` as OrderEvent["type"], completedAt, amountMinor, id),
      ];
    }),
    ...disputes.flatMap(({ status, amountMinor, openedAt, closedAt }) => [
      ...event("dispute.opened", openedAt, amountMinor),
      ...event(`dispute.${status}` as OrderEvent["type"], closedAt, amountMinor),
    ]),
  ];
  return events.toSorted((one, other) => (one.at < other.at ? -1 : Number(one.at > other.at)));
}
