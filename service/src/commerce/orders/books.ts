import type { Context } from "../../core/context.ts";
import { type SaleParts, splitRefund } from "../../core/money/split.ts";
import type { Tx } from "../../platform/db/database.ts";
import { tally } from "../analytics/sums.ts";
import { type Entry, type Posting, post } from "../ledger/ledger.ts";
import type { OrderRow } from "./queries.ts";

/** An order whose money moves: `maturesAt` is from when its seller may be paid out. */
export type BookedOrder = Pick<
  OrderRow,
  "id" | "sellerId" | "productId" | "referrerId" | "currency" | "totalMinor" | "discountMinor"
> &
  SaleParts & { maturesAt: Date };

type Move = Omit<Posting, "currency"> & { at: Date };

/** In the books, and in what its seller reads of them. */
export async function bookOf(ctx: Context, tx: Tx, order: BookedOrder, move: Move): Promise<void> {
  await post(ctx, tx, { ...move, currency: order.currency });
  await tally(ctx, tx, order, move);
}

/** What each of those who share in an order gains by its parts; a refund takes the same with the signs turned. */
export function shares(order: BookedOrder, parts: SaleParts): Entry[] {
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
  completedAt: Date,
): Promise<void> {
  const processorFee = order.processorFeeMinor ?? 0n;
  const of = { orderId: order.id };
  await bookOf(ctx, tx, order, {
    kind: "sale",
    sourceId: order.id,
    at: completedAt,
    entries: [
      { ...of, account: "provider_clearing", amountMinor: processorFee - order.totalMinor },
      { ...of, account: "processor_fees", amountMinor: -processorFee },
      ...shares(order, order),
    ],
  });
}

const NOTHING: SaleParts = { feeMinor: 0n, commissionMinor: 0n, taxMinor: 0n, sellerMinor: 0n };

/**
 * What an amount takes from each who shares in the order. It follows from how much was taken before and nothing else, so that
 * refunds and disputes in any order leave what one refund of their sum would.
 */
const sharesOf = (order: BookedOrder, takenMinor: bigint, amountMinor: bigint) =>
  shares(order, amountMinor === 0n ? NOTHING : splitRefund(order, takenMinor, amountMinor));

const turned = (entries: Entry[]): Entry[] =>
  entries.map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));

export interface BookedRefund {
  refundId: string;
  succeededAt: Date;
  /** What others had of the order before: refunded, or held by a dispute. */
  takenMinor: bigint;
  amountMinor: bigint;
  /** How much of the amount a dispute holds already, so that it is not taken twice. */
  heldMinor: bigint;
}

/** Those who shared in the order give it back; what a dispute held of it is held no longer. */
export async function bookRefund(
  ctx: Context,
  tx: Tx,
  order: BookedOrder,
  { refundId, succeededAt, takenMinor, amountMinor, heldMinor }: BookedRefund,
): Promise<void> {
  const of = { orderId: order.id };
  await bookOf(ctx, tx, order, {
    kind: "refund",
    sourceId: refundId,
    at: succeededAt,
    entries: [
      { ...of, account: "provider_clearing", amountMinor },
      { ...of, account: "dispute_hold", amountMinor: -heldMinor },
      ...turned(sharesOf(order, takenMinor, amountMinor - heldMinor)),
    ],
  });
}

/** The buyer's bank sent it back: the provider has it for us again, and it is the buyer's. Nobody who gave it gets it back. */
export const bookRefundReturned = (
  ctx: Context,
  tx: Tx,
  order: Pick<OrderRow, "id" | "buyerId" | "currency">,
  {
    refundId,
    amountMinor,
    returnedAt,
  }: Pick<BookedRefund, "refundId" | "amountMinor"> & { returnedAt: Date },
) =>
  post(ctx, tx, {
    kind: "refund_returned",
    sourceId: refundId,
    at: returnedAt,
    currency: order.currency,
    entries: [
      { orderId: order.id, account: "provider_clearing", amountMinor: -amountMinor },
      { orderId: order.id, account: "buyer_credit", ownerId: order.buyerId, amountMinor },
    ],
  });

/** The marketplace gave it to the buyer from its own bank account: the provider keeps it for the marketplace. */
export const bookRefundSettled = (
  ctx: Context,
  tx: Tx,
  order: Pick<OrderRow, "id" | "buyerId" | "currency">,
  { refundId, amountMinor, settledAt }: { refundId: string; amountMinor: bigint; settledAt: Date },
) =>
  post(ctx, tx, {
    kind: "refund_settled",
    sourceId: refundId,
    at: settledAt,
    currency: order.currency,
    entries: [
      { orderId: order.id, account: "buyer_credit", ownerId: order.buyerId, amountMinor: -amountMinor },
      { orderId: order.id, account: "bank", amountMinor },
    ],
  });

export interface BookedDispute {
  disputeId: string;
  /** When it was opened, won or lost. */
  at: Date;
  /** What others had of the order before. */
  takenMinor: bigint;
  heldMinor: bigint;
}

/** The bank may take it: until that is decided it is nobody's. */
export const bookDisputeOpened = (
  ctx: Context,
  tx: Tx,
  order: BookedOrder,
  { disputeId, at, takenMinor, heldMinor }: BookedDispute,
) =>
  bookOf(ctx, tx, order, {
    kind: "dispute_opened",
    sourceId: disputeId,
    at,
    entries: [
      { orderId: order.id, account: "dispute_hold", amountMinor: heldMinor },
      ...turned(sharesOf(order, takenMinor, heldMinor)),
    ],
  });

/** It is theirs again who gave it. */
export const bookDisputeWon = (
  ctx: Context,
  tx: Tx,
  order: BookedOrder,
  { disputeId, at, takenMinor, heldMinor }: BookedDispute,
) =>
  bookOf(ctx, tx, order, {
    kind: "dispute_won",
    sourceId: disputeId,
    at,
    entries: [
      { orderId: order.id, account: "dispute_hold", amountMinor: -heldMinor },
      ...sharesOf(order, takenMinor, heldMinor),
    ],
  });

/**
 * The bank took it, and the provider a fee for that, which the seller bears. What the order no longer had (`excessMinor`: it was
 * refunded before) is the marketplace's loss.
 */
export async function bookDisputeLost(
  ctx: Context,
  tx: Tx,
  order: BookedOrder,
  lost: Omit<BookedDispute, "takenMinor"> & { excessMinor: bigint; feeMinor: bigint },
): Promise<void> {
  const { disputeId, at, heldMinor, excessMinor, feeMinor } = lost;
  const of = { orderId: order.id };
  await bookOf(ctx, tx, order, {
    kind: "dispute_lost",
    sourceId: disputeId,
    at,
    entries: [
      { ...of, account: "dispute_hold", amountMinor: -heldMinor },
      { ...of, account: "dispute_losses", amountMinor: -excessMinor },
      { ...of, account: "seller", ownerId: order.sellerId, amountMinor: -feeMinor },
      { ...of, account: "provider_clearing", amountMinor: heldMinor + excessMinor + feeMinor },
    ],
  });
}
