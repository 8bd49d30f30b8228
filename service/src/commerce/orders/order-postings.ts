import type { Context } from "../../core/context.ts";
import { type SaleParts, splitRefund } from "../../core/money/split.ts";
import type { Tx } from "../../platform/db/database.ts";
import { waitForAll } from "../../platform/db/pipeline.ts";
import { recordMovement } from "../analytics/sales-sums.ts";
import { type Entry, type Posting, postTransaction } from "../ledger/ledger.ts";
import type { OrderRow } from "./queries.ts";

/** `maturesAt`: the earliest payout of the sale. */
export type PostableOrder = Pick<
  OrderRow,
  "id" | "sellerId" | "productId" | "referrerId" | "currency" | "totalMinor" | "discountMinor"
> &
  SaleParts & { maturesAt: Date };

type OrderPosting = Omit<Posting, "currency"> & { at: Date };

/** Posts to the ledger and to the sales sums of the seller. */
export async function postOrderTransaction(
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  move: OrderPosting,
): Promise<void> {
  await waitForAll([
    postTransaction(ctx, tx, { ...move, currency: order.currency }),
    recordMovement(ctx, tx, order, move),
  ]);
}

/** The entries of all parties to an order. A refund has the same entries with opposite signs. */
export function shareEntries(order: PostableOrder, parts: SaleParts): Entry[] {
  const orderRef = { orderId: order.id };
  const people = { ...orderRef, maturesAt: order.maturesAt };
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
    { ...orderRef, account: "platform_revenue", amountMinor: parts.feeMinor },
    { ...orderRef, account: "tax_payable", amountMinor: parts.taxMinor },
  ];
}

/** The provider's balance for us grows; its fee is an expense of the marketplace. */
export async function postSale(
  ctx: Context,
  tx: Tx,
  order: PostableOrder & { processorFeeMinor: bigint | null },
  completedAt: Date,
): Promise<void> {
  const processorFee = order.processorFeeMinor ?? 0n;
  const orderRef = { orderId: order.id };
  await postOrderTransaction(ctx, tx, order, {
    kind: "sale",
    sourceId: order.id,
    at: completedAt,
    entries: [
      { ...orderRef, account: "provider_clearing", amountMinor: processorFee - order.totalMinor },
      { ...orderRef, account: "processor_fees", amountMinor: -processorFee },
      ...shareEntries(order, order),
    ],
  });
}

const NO_PARTS: SaleParts = { feeMinor: 0n, commissionMinor: 0n, taxMinor: 0n, sellerMinor: 0n };

/**
 * The shares depend only on the amount taken before. Refunds and disputes in any order therefore leave the same as one refund of their
 * sum.
 */
const takenShares = (order: PostableOrder, takenMinor: bigint, amountMinor: bigint) =>
  shareEntries(order, amountMinor === 0n ? NO_PARTS : splitRefund(order, takenMinor, amountMinor));

const negateEntries = (entries: Entry[]): Entry[] =>
  entries.map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));

export interface RefundPosting {
  refundId: string;
  succeededAt: Date;
  /** Refunded or held before. */
  takenMinor: bigint;
  amountMinor: bigint;
  /** The part that a dispute already holds, so that it is not taken twice. */
  heldMinor: bigint;
}

/** Debits each party by its share and releases a dispute's hold on that part. */
export async function postRefund(
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  { refundId, succeededAt, takenMinor, amountMinor, heldMinor }: RefundPosting,
): Promise<void> {
  const orderRef = { orderId: order.id };
  await postOrderTransaction(ctx, tx, order, {
    kind: "refund",
    sourceId: refundId,
    at: succeededAt,
    entries: [
      { ...orderRef, account: "provider_clearing", amountMinor },
      { ...orderRef, account: "dispute_hold", amountMinor: -heldMinor },
      ...negateEntries(takenShares(order, takenMinor, amountMinor - heldMinor)),
    ],
  });
}

/** The bank returned the refund: the provider has the money, and we owe it to the buyer. */
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

/** The marketplace paid the buyer from its own bank account, so the money at the provider belongs to it. */
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
  at: Date;
  /** Refunded or held before. */
  takenMinor: bigint;
  heldMinor: bigint;
}

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

/** The seller bears the provider's fee. An amount that was refunded before (`excessMinor`) is the marketplace's loss. */
export async function postDisputeLost(
  ctx: Context,
  tx: Tx,
  order: PostableOrder,
  lost: Omit<DisputePosting, "takenMinor"> & { excessMinor: bigint; feeMinor: bigint },
): Promise<void> {
  const { disputeId, at, heldMinor, excessMinor, feeMinor } = lost;
  const orderRef = { orderId: order.id };
  await postOrderTransaction(ctx, tx, order, {
    kind: "dispute_lost",
    sourceId: disputeId,
    at,
    entries: [
      { ...orderRef, account: "dispute_hold", amountMinor: -heldMinor },
      { ...orderRef, account: "dispute_losses", amountMinor: -excessMinor },
      { ...orderRef, account: "seller", ownerId: order.sellerId, amountMinor: -feeMinor },
      { ...orderRef, account: "provider_clearing", amountMinor: heldMinor + excessMinor + feeMinor },
    ],
  });
}
