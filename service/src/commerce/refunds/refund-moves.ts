import type { Context, RequestSource } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { lockOrder } from "../orders/queries.ts";
import { type PaidOrder, remainingOf, setAside } from "./giving-back.ts";
import { isEnded, isOnItsWay, type RefundMoveName, refundMoves } from "./refund-lifecycle.ts";
import {
  findRefundRow,
  insertRefund,
  listRefundsOfOrder,
  type NewRefund,
  type RefundChange,
  type RefundRow,
  writeRefund,
} from "./refund-queries.ts";

/** Who makes a move; the service by itself has neither a name nor an address. */
export interface Doer {
  actorId: string | null;
  source: RequestSource | null;
}

export const theService: Doer = { actorId: null, source: null };

export interface Locked {
  order: PaidOrder;
  refund: RefundRow;
}

/** The order first, as everybody does who moves what hangs on it. */
export async function lockRefund(tx: Tx, id: string): Promise<Locked | undefined> {
  const found = await findRefundRow(tx, id);
  if (!found) return undefined;
  const order = (await lockOrder(tx, found.orderId)) as PaidOrder;
  return { order, refund: (await findRefundRow(tx, id))! };
}

type Wish = Pick<
  NewRefund,
  "origin" | "amount_minor" | "reason" | "details" | "decide_by" | "approval_reason"
>;

/** Writes a refund of a locked order, which nobody has decided yet. */
export async function startRefund(
  ctx: Context,
  tx: Tx,
  order: PaidOrder,
  wish: Wish,
  by: Doer,
): Promise<Locked> {
  const id = ctx.newId();
  await insertRefund(tx, {
    ...wish,
    id,
    order_id: order.id,
    currency: order.currency,
    created_at: ctx.now(),
  });
  const refund = (await findRefundRow(tx, id))!;
  await recordRefund(ctx, tx, refund, "refund.requested", by);
  return { order, refund };
}

/**
 * Moves a refund of a locked order as the table of refund-lifecycle.ts says. Answers how both stand then; null where it is not, or
 * is no longer, in a state that the move starts from.
 */
export async function moveRefund(
  ctx: Context,
  tx: Tx,
  { order, refund }: Locked,
  name: RefundMoveName,
  by: Doer,
  change: Omit<RefundChange, "status"> = {},
): Promise<Locked | null> {
  const { from, to, deed, decides } = refundMoves[name];
  if (!from.includes(refund.status)) return null;
  const moved = await writeRefund(tx, refund.id, refund.status, {
    ...change,
    status: to,
    ...(decides && { decided_at: ctx.now(), decided_by: by.actorId }),
    ...(isEnded(to) && { completed_at: ctx.now() }),
  });
  if (!moved) return null;
  const after = (await findRefundRow(tx, refund.id))!;
  if (deed) await recordRefund(ctx, tx, after, deed, by);
  return { order: await reserve(tx, order, refund, after), refund: after };
}

/** What is on its way is set aside, and given free when it is not any more. */
async function reserve(tx: Tx, order: PaidOrder, before: RefundRow, after: RefundRow): Promise<PaidOrder> {
  const by = amountOnItsWay(after) - amountOnItsWay(before);
  return by === 0n ? order : setAside(tx, order, by);
}

const amountOnItsWay = ({ status, amountMinor }: RefundRow) => (isOnItsWay(status) ? amountMinor : 0n);

/** Approves a refund of as much as was asked for, or of what of that remains. */
export async function approveRefund(ctx: Context, tx: Tx, locked: Locked, by: Doer): Promise<Locked | null> {
  const remaining = remainingOf(locked.order);
  if (remaining === 0n) throw onItsWay();
  const { amountMinor } = locked.refund;
  return moveRefund(ctx, tx, locked, "approve", by, {
    amount_minor: amountMinor < remaining ? amountMinor : remaining,
  });
}

export const onItsWay = () =>
  new ApiError("CONFLICT", "All that remains of this purchase is on its way back already: read its refunds.");

/** Takes back what nobody has asked the provider for yet. */
export async function withdrawRefunds(
  ctx: Context,
  tx: Tx,
  order: PaidOrder,
  note: string,
): Promise<PaidOrder> {
  let after = order;
  for (const refund of await listRefundsOfOrder(tx, order.id)) {
    const moved = await moveRefund(ctx, tx, { order: after, refund }, "withdraw", theService, {
      decision_note: note,
    });
    after = moved?.order ?? after;
  }
  return after;
}

/** In the audit log. */
export const recordRefund = (
  ctx: Context,
  tx: Tx,
  refund: RefundRow,
  action: string,
  { actorId, source }: Doer,
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
