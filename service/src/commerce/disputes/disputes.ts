import type { Context } from "../../core/context.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Dispute } from "../../integrations/payments/payments.ts";
import type { Tx } from "../../platform/db/database.ts";
import { syncCharge } from "../charges/charges.ts";
import {
  type AuditedDispute,
  auditDispute,
  isInquiry,
  newDisputeRow,
  notPaidYetError,
} from "../charges/dispute-record.ts";
import { orderTarget } from "../checkout/order-payment.ts";
import { postDisputeLost, postDisputeOpened, postDisputeWon } from "../orders/order-postings.ts";
import { findOrder, lockOrder, updateOrder } from "../orders/queries.ts";
import {
  closeDispute,
  type DisputeRow,
  escalateInquiry,
  findDisputeOf,
  insertDispute,
  listHolds,
} from "../refunds/dispute-queries.ts";
import { withdrawRefunds } from "../refunds/refund-moves.ts";
import {
  isPaidOrder,
  type PaidOrder,
  paidOrderStatus,
  recordRefunded,
} from "../refunds/refund-settlement.ts";
import { reconcileRefundsOf } from "../refunds/refund-submission.ts";
import { notifyOfDispute } from "./dispute-emails.ts";

/** Returns false if the dispute is not about an order. */
export async function applyOrderDispute(ctx: Context, reported: Dispute): Promise<boolean> {
  const orderId = toUuid("ord", reported.orderId);
  const order = orderId ? await findOrder(ctx.db, orderId) : undefined;
  if (!order) return false;
  // The bank may be faster than the provider's answer to our charge.
  if (!isPaidOrder(order)) await syncCharge(ctx, orderTarget, reported.orderId);
  if (reported.state === "lost") await reconcileRefundsOf(ctx, order.id);
  await ctx.db.transaction().execute((tx) => syncDisputeRow(ctx, tx, order.id, reported));
  return true;
}

/** Does not change a decided dispute. */
async function syncDisputeRow(ctx: Context, tx: Tx, orderId: string, reported: Dispute): Promise<void> {
  const order = await lockOrder(tx, orderId);
  if (!order || !isPaidOrder(order)) throw notPaidYetError(order?.status);
  const known = await findDisputeOf(tx, reported.disputeId);
  if (isInquiry(reported)) return syncInquiry(ctx, tx, order, { known, reported });
  // An inquiry can become a dispute after it was closed, too.
  const isOpened = known !== undefined && !known.status.startsWith("inquiry");
  const open = isOpened ? { order, dispute: known } : await openDispute(ctx, tx, order, { known, reported });
  if (open.dispute.status !== "open" || reported.state === "open") return;
  if (reported.state === "won") await applyWin(ctx, tx, open, reported);
  else await applyLoss(ctx, tx, open, reported);
}

interface DisputeUpdate {
  known: DisputeRow | undefined;
  reported: Dispute;
}

/** An inquiry moves no money: nothing is held, and refunds continue. A refund ends the inquiry. */
async function syncInquiry(
  ctx: Context,
  tx: Tx,
  order: PaidOrder,
  { known, reported }: DisputeUpdate,
): Promise<void> {
  const now = ctx.now();
  if (!known) {
    await insertDispute(tx, { ...toNewDispute(ctx, order, reported), status: "inquiry", heldMinor: 0n });
    await auditOrderDispute(ctx, tx, order, reported, "inquiry");
  }
  if (reported.state === "inquiry_closed" && (known?.status ?? "inquiry") === "inquiry")
    await closeDispute(tx, reported.disputeId, {
      status: "inquiry_closed",
      feeMinor: reported.feeMinor,
      closedAt: now,
    });
}

const toNewDispute = (ctx: Context, order: PaidOrder, reported: Dispute) => ({
  ...newDisputeRow(ctx, reported),
  orderId: order.id,
});

interface DisputedOrder {
  order: PaidOrder;
  dispute: DisputeRow;
}

/** The buyer keeps the product until the bank decides. */
async function openDispute(
  ctx: Context,
  tx: Tx,
  paid: PaidOrder,
  { known, reported }: DisputeUpdate,
): Promise<DisputedOrder> {
  const order = await withdrawRefunds(ctx, tx, paid, "The payment is disputed at the bank.");
  const takenMinor = order.refundedMinor + (await sumHolds(tx, order));
  const free = order.totalMinor - takenMinor;
  const heldMinor = reported.amountMinor < free ? reported.amountMinor : free;
  const newDispute = { ...toNewDispute(ctx, order, reported), status: "open" as const, heldMinor };
  const dispute = known ? { ...newDispute, id: known.id } : newDispute;
  await (known ? escalateInquiry(tx, dispute) : insertDispute(tx, dispute));
  await updateOrder(tx, order.id, { status: "disputed" });
  await postDisputeOpened(ctx, tx, order, {
    disputeId: dispute.id,
    at: dispute.openedAt,
    takenMinor,
    heldMinor,
  });
  const opened: DisputedOrder = {
    order: { ...order, status: "disputed" },
    dispute: required(await findDisputeOf(tx, reported.disputeId), "the dispute"),
  };
  await auditAndNotify(ctx, tx, opened, "opened");
  return opened;
}

const sumHolds = async (tx: Tx, order: PaidOrder) =>
  (await listHolds(tx, order.id)).reduce((sum, { heldMinor }) => sum + heldMinor, 0n);

async function applyWin(
  ctx: Context,
  tx: Tx,
  { order, dispute }: DisputedOrder,
  reported: Dispute,
): Promise<void> {
  const { id: disputeId, heldMinor } = dispute;
  // Treats this dispute as the last one: its share then equals that of a single refund of the rest.
  const takenMinor = order.refundedMinor + (await sumHolds(tx, order)) - heldMinor;
  const at = ctx.now();
  await postDisputeWon(ctx, tx, order, { disputeId, at, takenMinor, heldMinor });
  await closeAndRestoreOrder(ctx, tx, { order, dispute }, reported, { status: "won", at });
}

/** A refund in progress might pay the same money again, so a later job run applies the loss. */
async function applyLoss(
  ctx: Context,
  tx: Tx,
  { order, dispute }: DisputedOrder,
  reported: Dispute,
): Promise<void> {
  if (order.refundingMinor > 0n) {
    ctx.log.warn({ order: order.id }, "a dispute was lost during a refund; a later job run applies it");
    return;
  }
  const { id: disputeId, heldMinor } = dispute;
  const { feeMinor } = reported;
  const at = ctx.now();
  // The buyer received this part twice: by a refund and by the dispute.
  const excessMinor = reported.amountMinor > heldMinor ? reported.amountMinor - heldMinor : 0n;
  await postDisputeLost(ctx, tx, order, { disputeId, at, heldMinor, excessMinor, feeMinor });
  const after = await recordRefunded(tx, order, heldMinor);
  const lost = { lostMinor: heldMinor + excessMinor, excessMinor };
  await closeAndRestoreOrder(ctx, tx, { order: after, dispute }, reported, { status: "lost", at, ...lost });
  if (excessMinor > 0n)
    ctx.log.warn(
      { order: order.id, dispute: reported.disputeId, excessMinor },
      "a lost dispute took more than the order had left: the excess is booked as the marketplace's loss",
    );
}

/** Restores the status of the order, unless another dispute of it is open. */
async function closeAndRestoreOrder(
  ctx: Context,
  tx: Tx,
  { order, dispute }: DisputedOrder,
  reported: Dispute,
  { status, at, ...lost }: { status: "won" | "lost"; at: Date; lostMinor?: bigint; excessMinor?: bigint },
): Promise<void> {
  await closeDispute(tx, reported.disputeId, {
    status,
    feeMinor: reported.feeMinor,
    closedAt: at,
    ...lost,
  });
  const others = await listHolds(tx, order.id);
  if (others.length === 0) await updateOrder(tx, order.id, { status: paidOrderStatus(order) });
  await auditAndNotify(ctx, tx, { order, dispute }, status);
}

async function auditAndNotify(
  ctx: Context,
  tx: Tx,
  { order, dispute }: DisputedOrder,
  kind: "opened" | "won" | "lost",
): Promise<void> {
  await auditOrderDispute(ctx, tx, order, dispute, kind);
  await notifyOfDispute(ctx, tx, order, dispute, kind);
}

const auditOrderDispute = (
  ctx: Context,
  tx: Tx,
  { id, currency }: PaidOrder,
  { amountMinor, reason }: Pick<Dispute, "amountMinor" | "reason">,
  kind: AuditedDispute["kind"],
) =>
  auditDispute(ctx, tx, {
    target: { type: "order", id: toId("ord", id) },
    amountMinor,
    currency,
    reason,
    kind,
  });
