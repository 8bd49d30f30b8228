import type { Context } from "../../core/context.ts";
import { type SaleParts, splitRefund } from "../../core/money/split.ts";
import type { Tx } from "../../platform/db/database.ts";
import { recordMovement } from "../analytics/sales-sums.ts";
import { type Entry, type Posting, postTransaction } from "../ledger/ledger.ts";
import type { OrderRow } from "./queries.ts";

/** An order whose money moves: `maturesAt` is from when its seller may be paid out. */
export type PostableOrder = Pick<
  OrderRow,
  "id" | "sellerId" | "productId" | "referrerId" | "currency" | "totalMinor" | "discountMinor"
> &
  SaleParts & { maturesAt: Date };

type OrderPosting = Omit<Posting, "currency"> & { at: Date };

/** In the books, and in what its seller reads of them. */
export async function postOrderTransaction(
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  move: OrderPosting,
): Promise<void> {
  await postTransaction(ctx, tx, { ...move, currency: order.currency });
  await recordMovement(ctx, tx, order, move);
}

/** What each of those who share in an order gains by its parts; a refund takes the same with the signs turned. */
export function shareEntries(order: PostableOrder, parts: SaleParts): Entry[] {
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
export async function postSale(
  ctx: Context,
  tx: Tx,
  order: PostableOrder & { processorFeeMinor: bigint | null },
  completedAt: Date,
): Promise<void> {
  const processorFee = order.processorFeeMinor ?? 0n;
  const of = { orderId: order.id };
  await postOrderTransaction(ctx, tx, order, {
    kind: "sale",
    sourceId: order.id,
    at: completedAt,
    entries: [
      { ...of, account: "provider_clearing", amountMinor: processorFee - order.totalMinor },
      { ...of, account: "processor_fees", amountMinor: -processorFee },
      ...shareEntries(order, order),
    ],
  });
}

const NO_PARTS: SaleParts = { feeMinor: 0n, commissionMinor: 0n, taxMinor: 0n, sellerMinor: 0n };

/**
 * What an amount takes from each who shares in the order. It follows from how much was taken before and nothing else, so that
 * refunds and disputes in any order leave what one refund of their sum would.
 */
const takenShares = (order: PostableOrder, takenMinor: bigint, amountMinor: bigint) =>
  shareEntries(order, amountMinor === 0n ? NO_PARTS : splitRefund(order, takenMinor, amountMinor));

const negateEntries = (entries: Entry[]): Entry[] =>
  entries.map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));

export interface RefundPosting {
  refundId: string;
  succeededAt: Date;
  /** What others had of the order before: refunded, or held by a dispute. */
  takenMinor: bigint;
  amountMinor: bigint;
  /** How much of the amount a dispute holds already, so that it is not taken twice. */
  heldMinor: bigint;
}

/** Those who shared in the order give it back; what a dispute held of it is held no longer. */
export async function postRefund(
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  { refundId, succeededAt, takenMinor, amountMinor, heldMinor }: RefundPosting,
): Promise<void> {
  const of = { orderId: order.id };
  await postOrderTransaction(ctx, tx, order, {
    kind: "refund",
    sourceId: refundId,
    at: succeededAt,
    entries: [
      { ...of, account: "provider_clearing", amountMinor },
      { ...of, account: "dispute_hold", amountMinor: -heldMinor },
      ...negateEntries(takenShares(order, takenMinor, amountMinor - heldMinor)),
    ],
  });
}

/** The bank returned the refund: the provider holds the money, and we owe it to the buyer. */
export const postRefundReturned = (
  ctx: Context,
  tx: Tx,
  order: Pick<OrderRow, "id" | "buyerId" | "currency">,
  {
    refundId,
    amountMinor,
    returnedAt,
  }: Pick<RefundPosting, "refundId" | "amountMinor"> & { returnedAt: Date },
) =>
  postTransaction(ctx, tx, {
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
export const postRefundSettled = (
  ctx: Context,
  tx: Tx,
  order: Pick<OrderRow, "id" | "buyerId" | "currency">,
  { refundId, amountMinor, settledAt }: { refundId: string; amountMinor: bigint; settledAt: Date },
) =>
  postTransaction(ctx, tx, {
    kind: "refund_settled",
    sourceId: refundId,
    at: settledAt,
    currency: order.currency,
    entries: [
      { orderId: order.id, account: "buyer_credit", ownerId: order.buyerId, amountMinor: -amountMinor },
      { orderId: order.id, account: "bank", amountMinor },
    ],
  });

export interface DisputePosting {
  disputeId: string;
  /** When it was opened, won or lost. */
  at: Date;
  /** What others had of the order before. */
  takenMinor: bigint;
  heldMinor: bigint;
}

/** Holds the shares until the bank decides. */
export const postDisputeOpened = (
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  { disputeId, at, takenMinor, heldMinor }: DisputePosting,
) =>
  postOrderTransaction(ctx, tx, order, {
    kind: "dispute_opened",
    sourceId: disputeId,
    at,
    entries: [
      { orderId: order.id, account: "dispute_hold", amountMinor: heldMinor },
      ...negateEntries(takenShares(order, takenMinor, heldMinor)),
    ],
  });

export const postDisputeWon = (
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  { disputeId, at, takenMinor, heldMinor }: DisputePosting,
) =>
  postOrderTransaction(ctx, tx, order, {
    kind: "dispute_won",
    sourceId: disputeId,
    at,
    entries: [
      { orderId: order.id, account: "dispute_hold", amountMinor: -heldMinor },
      ...takenShares(order, takenMinor, heldMinor),
    ],
  });

/**
 * The bank took it, and the provider a fee for that, which the seller bears. What the order no longer had (`excessMinor`: it was
 * refunded before) is the marketplace's loss.
 */
export async function postDisputeLost(
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  lost: Omit<DisputePosting, "takenMinor"> & { excessMinor: bigint; feeMinor: bigint },
): Promise<void> {
  const { disputeId, at, heldMinor, excessMinor, feeMinor } = lost;
  const of = { orderId: order.id };
  await postOrderTransaction(ctx, tx, order, {
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
