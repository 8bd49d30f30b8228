import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { type Entry, post } from "../ledger/ledger.ts";
import type { Parts } from "../money/split.ts";
import type { OrderRow } from "./queries.ts";

/** An order whose money moves: `maturesAt` is from when its seller may be paid out. */
export type BookedOrder = Pick<OrderRow, "id" | "sellerId" | "referrerId" | "currency" | "totalMinor"> &
  Parts & { maturesAt: Date };

/** What each of those who share in an order gains by its parts; a refund takes the same with the signs turned. */
export function shares(order: BookedOrder, parts: Parts): Entry[] {
  const of = { orderId: order.id };
  const people = { ...of, maturesAt: order.maturesAt };
  return [
    { ...people, account: "seller", ownerId: order.sellerId, amountMinor: parts.sellerMinor },
    ...(order.referrerId
      ? [
          {
            ...people,
            account: "referrer" as const,
            ownerId: order.referrerId,
            amountMinor: parts.commissionMinor,
          },
        ]
      : []),
    { ...of, account: "platform_revenue", amountMinor: parts.feeMinor },
    { ...of, account: "tax_payable", amountMinor: parts.taxMinor },
  ];
}

/** The provider holds the total for us; what it kept for itself is the platform's expense. */
export async function bookSale(
  ctx: Context,
  tx: Tx,
  order: BookedOrder & { processorFeeMinor: bigint | null },
): Promise<void> {
  const processorFee = order.processorFeeMinor ?? 0n;
  const of = { orderId: order.id };
  await post(ctx, tx, {
    kind: "sale",
    sourceId: order.id,
    currency: order.currency,
    entries: [
      { ...of, account: "provider_clearing", amountMinor: processorFee - order.totalMinor },
      { ...of, account: "processor_fees", amountMinor: -processorFee },
      ...shares(order, order),
    ],
  });
}
