import type { Context } from "../context.ts";
import { toId } from "../ids.ts";
import type { OrderRow } from "./queries.ts";
import type { Receipt } from "./receipt.ts";

/** What a receipt says of an order: the parties as they were, the money as it stands now, so that a later refund shows. */
export function receiptOf(ctx: Context, order: OrderRow): Receipt {
  return {
    number: toId("ord", order.id),
    issuedAt: order.completedAt ?? order.createdAt,
    ...order.parties,
    lines: [{ title: order.productTitle, version: order.productVersion, amountMinor: order.subtotalMinor }],
    subtotalMinor: order.subtotalMinor,
    discountMinor: order.discountMinor,
    taxMinor: order.taxMinor,
    totalMinor: order.totalMinor,
    refundedMinor: order.refundedMinor,
    currency: order.currency,
    paymentMethod: order.paymentMethod,
    status: order.status,
    service: { name: "Stoa", origin: ctx.links.origin() },
  };
}
