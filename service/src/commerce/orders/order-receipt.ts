import type { Context } from "../../core/context.ts";
import { taxRateOf } from "../../core/money/percent.ts";
import { required } from "../../core/required.ts";
import { ISSUER_NAME, type Receipt } from "../receipts/receipt.ts";
import type { OrderRow } from "./queries.ts";
import { receiptNumberOf } from "./receipt-number.ts";
import { listSucceededRefunds } from "./receipt-queries.ts";

/** Names are those of the purchase, amounts are current: the receipt shows later refunds. */
export async function toOrderReceipt(ctx: Context, order: OrderRow): Promise<Receipt> {
  return {
    number: required(receiptNumberOf(order), "the number of a paid order"),
    issuedAt: required(order.completedAt, "the date of a paid order"),
    ...order.parties,
    lines: [
      {
        title: order.productTitle,
        detail: `Version ${order.productVersion}`,
        amountMinor: order.subtotalMinor,
      },
    ],
    subtotalMinor: order.subtotalMinor,
    discountMinor: order.discountMinor,
    discountReason: order.discountCode,
    taxMinor: order.taxMinor,
    taxRate: taxRateOf(order),
    totalMinor: order.totalMinor,
    refundedMinor: order.refundedMinor,
    refunds: await listSucceededRefunds(ctx.db, order.id),
    currency: order.currency,
    paymentMethod: order.paymentMethod,
    status: order.status,
    service: { name: ISSUER_NAME, origin: ctx.links.origin() },
  };
}
