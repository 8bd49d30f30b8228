import type { Context, RequestSource } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { lockOrder } from "../orders/queries.ts";
import { isFinal, isInProgress, type RefundMoveName, refundMoves } from "./refund-lifecycle.ts";
import {
  findRefundRow,
  insertRefund,
  listRefundsOfOrder,
  type NewRefund,
  type RefundChange,
  type RefundRow,
  updateRefundRow,
} from "./refund-queries.ts";
import { type PaidOrder, remainingAmount, reserveRefund } from "./refund-settlement.ts";

/** Both are null for the service itself. */
export interface RefundActor {
  actorId: string | null;
  source: RequestSource | null;
}

export const SERVICE_ACTOR: RefundActor = { actorId: null, source: null };

export interface LockedRefund {
  order: PaidOrder;
  refund: RefundRow;
}

/** Lock order: the order before its refunds. */
export async function lockRefund(tx: Tx, id: string): Promise<LockedRefund | undefined> {
  const found = await findRefundRow(tx, id);
  if (!found) return undefined;
  const order = (await lockOrder(tx, found.orderId)) as PaidOrder;
  return { order, refund: required(await findRefundRow(tx, id), "the refund") };
}

type RefundInput = Pick<
  NewRefund,
  "origin" | "amountMinor" | "reason" | "details" | "decideBy" | "approvalReason"
>;

export async function createRefund(
  ctx: Context,
  tx: Tx,
  order: PaidOrder,
  input: RefundInput,
  by: RefundActor,
): Promise<LockedRefund> {
  const id = ctx.newId();
  await insertRefund(tx, {
    ...input,
    id,
    orderId: order.id,
    currency: order.currency,
    createdAt: ctx.now(),
  });
  const refund = required(await findRefundRow(tx, id), "the refund");
  await auditRefund(ctx, tx, refund, "refund.requested", by);
  return { order, refund };
}

/** Returns both rows after the move, or null if the move does not start from the present state. */
export async function moveRefund(
  ctx: Context,
  tx: Tx,
  { order, refund }: LockedRefund,
  name: RefundMoveName,
  by: RefundActor,
  change: Omit<RefundChange, "status"> = {},
): Promise<LockedRefund | null> {
  const { from, to, auditAction, decides } = refundMoves[name];
  if (!from.includes(refund.status)) return null;
  const moved = await updateRefundRow(tx, refund.id, refund.status, {
    ...change,
    status: to,
    ...(decides && { decidedAt: ctx.now(), decidedBy: by.actorId }),
    ...(isFinal(to) && { completedAt: ctx.now() }),
  });
  if (!moved) return null;
  const after = required(await findRefundRow(tx, refund.id), "the refund");
  if (auditAction) await auditRefund(ctx, tx, after, auditAction, by);
  return { order: await adjustReservation(tx, order, refund, after), refund: after };
}

async function adjustReservation(
  tx: Tx,
  order: PaidOrder,
  before: RefundRow,
  after: RefundRow,
): Promise<PaidOrder> {
  const by = reservedAmount(after) - reservedAmount(before);
  return by === 0n ? order : reserveRefund(tx, order, by);
}

const reservedAmount = ({ status, amountMinor }: RefundRow) => (isInProgress(status) ? amountMinor : 0n);

/** Approves at most what remains of the order. */
export async function approveRefund(
  ctx: Context,
  tx: Tx,
  locked: LockedRefund,
  by: RefundActor,
): Promise<LockedRefund | null> {
  const remaining = remainingAmount(locked.order);
  if (remaining === 0n) throw alreadyRefundingError();
  const { amountMinor } = locked.refund;
  return moveRefund(ctx, tx, locked, "approve", by, {
    amountMinor: amountMinor < remaining ? amountMinor : remaining,
  });
}

export const alreadyRefundingError = () =>
  new ApiError("CONFLICT", "The rest of this purchase is already being refunded: see its refunds.");

export async function withdrawRefunds(
  ctx: Context,
  tx: Tx,
  order: PaidOrder,
  note: string,
): Promise<PaidOrder> {
  let after = order;
  for (const refund of await listRefundsOfOrder(tx, order.id)) {
    const moved = await moveRefund(ctx, tx, { order: after, refund }, "withdraw", SERVICE_ACTOR, {
      decisionNote: note,
    });
    after = moved?.order ?? after;
  }
  return after;
}

export const auditRefund = (
  ctx: Context,
  tx: Tx,
  refund: RefundRow,
  action: string,
  { actorId, source }: RefundActor,
) =>
  recordAudit(ctx, tx, {
    actorId,
    action,
    target: { type: "refund", id: toId("refund", refund.id) },
    source,
    details: {
      orderId: toId("ord", refund.orderId),
      amount: toDecimal(refund.amountMinor, refund.currency),
      currency: refund.currency,
      ...(refund.decisionNote && { note: refund.decisionNote }),
      ...(refund.failureCode && { failureCode: refund.failureCode }),
    },
  });
