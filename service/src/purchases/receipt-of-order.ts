import type { Context } from "../context.ts";
import { toId } from "../ids.ts";
import { findUser, toUserId } from "../people/users.ts";
import type { OrderRow } from "./queries.ts";
import type { Receipt } from "./receipt.ts";

/** What a receipt says of an order, as it stands now: a later refund shows on it. */
export async function receiptOf(ctx: Context, order: OrderRow): Promise<Receipt> {
  const buyer = await findUser(ctx, toUserId(order.buyerId));
  return {
    number: toId("ord", order.id),
    issuedAt: order.completedAt ?? order.createdAt,
    buyer: { name: buyer.name, email: buyer.email },
    seller: { name: order.sellerName },
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
