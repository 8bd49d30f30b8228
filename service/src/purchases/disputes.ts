import { record } from "../audit/audit.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { ApiError } from "../errors.ts";
import { toId, toUuid } from "../ids.ts";
import { eachInTurn } from "../jobs/in-turn.ts";
import { toDecimal } from "../money/amount.ts";
import type { Dispute } from "../outside/payments.ts";
import { bookDisputeLost, bookDisputeOpened, bookDisputeWon } from "./books.ts";
import { tellOfDispute } from "./dispute-letters.ts";
import {
  closeDispute,
  type DisputeRow,
  findDisputeOf,
  insertDispute,
  listHolds,
  listOpenDisputes,
} from "./dispute-queries.ts";
import { isPaid, noteGivenBack, type PaidOrder, statusByMoney } from "./giving-back.ts";
import { refresh } from "./payment.ts";
import { findOrder, lockOrder, moveOrder } from "./queries.ts";
import { withdrawRefunds } from "./refund-moves.ts";
import { reconcileRefundsOf } from "./refund-payment.ts";

/**
 * Reads a dispute from the provider and moves ours to it. Whatever was told of it before, how often and in which order: it ends as
 * the provider has it.
 */
export async function hearOfDispute(ctx: Context, disputeId: string): Promise<void> {
  const told = await ctx.outside.payments.findDispute(disputeId);
  const orderId = told && toUuid("ord", told.orderId);
  const order = orderId ? await findOrder(ctx.db, orderId) : undefined;
  if (!told || !order) {
    ctx.log.warn({ dispute: disputeId }, "a dispute that concerns no order of ours");
    return;
  }
  // A bank may be faster than the provider's answer to our charge.
  await refresh(ctx, order);
  if (told.state === "lost") await reconcileRefundsOf(ctx, order.id);
  await ctx.db.transaction().execute((tx) => follow(ctx, tx, order.id, told));
}

/** Goes the way from what we know of a dispute to what is told of it; what is decided stays. */
async function follow(ctx: Context, tx: Tx, orderId: string, told: Dispute): Promise<void> {
  const order = await lockOrder(tx, orderId);
  if (!order || !isPaid(order))
    throw new ApiError("INVALID_STATE", "Its order is not paid yet: tell us again later.", {
      current: order?.status,
    });
  const known = await findDisputeOf(tx, told.disputeId);
  const open = known ? { order, dispute: known } : await openDispute(ctx, tx, order, told);
  if (open.dispute.status !== "open" || told.state === "open") return;
  if (told.state === "won") await win(ctx, tx, open, told);
  else await lose(ctx, tx, open, told);
}

interface Disputed {
  order: PaidOrder;
  dispute: DisputeRow;
}

/** What the bank may take of the order is nobody's until it is decided; the buyer keeps the product meanwhile. */
async function openDispute(ctx: Context, tx: Tx, paid: PaidOrder, told: Dispute): Promise<Disputed> {
  const order = await withdrawRefunds(ctx, tx, paid, "The payment is disputed at the bank.");
  const takenMinor = order.refundedMinor + (await heldOf(tx, order));
  const free = order.totalMinor - takenMinor;
  const heldMinor = told.amountMinor < free ? told.amountMinor : free;
  const id = ctx.newId();
  const now = ctx.now();
  await insertDispute(tx, {
    id,
    order_id: order.id,
    provider_dispute_id: told.disputeId,
    amount_minor: told.amountMinor,
    held_minor: heldMinor,
    fee_minor: told.feeMinor,
    reason: told.reason,
    answer_by: told.answerBy,
    opened_at: now,
  });
  await moveOrder(tx, order.id, { status: "disputed" });
  await bookDisputeOpened(ctx, tx, order, { disputeId: id, at: now, takenMinor, heldMinor });
  const opened: Disputed = {
    order: { ...order, status: "disputed" },
    dispute: (await findDisputeOf(tx, told.disputeId))!,
  };
  await tellAll(ctx, tx, opened, "opened");
  return opened;
}

const heldOf = async (tx: Tx, order: PaidOrder) =>
  (await listHolds(tx, order.id)).reduce((sum, { heldMinor }) => sum + heldMinor, 0n);

async function win(ctx: Context, tx: Tx, { order, dispute }: Disputed, told: Dispute): Promise<void> {
  const { id: disputeId, heldMinor } = dispute;
  // As the last that was taken: what stays taken is then what one refund of it would have taken.
  const takenMinor = order.refundedMinor + (await heldOf(tx, order)) - heldMinor;
  const at = ctx.now();
  await bookDisputeWon(ctx, tx, order, { disputeId, at, takenMinor, heldMinor });
  await close(ctx, tx, { order, dispute }, told, { status: "won", at });
}

/** The money is the buyer's. A refund that may just reach them would be the same money again: it is waited for. */
async function lose(ctx: Context, tx: Tx, { order, dispute }: Disputed, told: Dispute): Promise<void> {
  if (order.refundingMinor > 0n) {
    ctx.log.warn(
      { order: order.id },
      "a dispute is lost while a refund is under way; it is settled after that",
    );
    return;
  }
  const { id: disputeId, heldMinor } = dispute;
  const at = ctx.now();
  await bookDisputeLost(ctx, tx, order, { disputeId, at, heldMinor, feeMinor: told.feeMinor });
  const after = await noteGivenBack(tx, order, heldMinor);
  await close(ctx, tx, { order: after, dispute }, told, { status: "lost", at });
}

/** The order is as before, or as what the bank took makes it; unless another dispute of it is open. */
async function close(
  ctx: Context,
  tx: Tx,
  { order, dispute }: Disputed,
  { feeMinor }: Dispute,
  { status, at }: { status: "won" | "lost"; at: Date },
): Promise<void> {
  await closeDispute(tx, dispute.id, { status, fee_minor: feeMinor, closed_at: at });
  const others = await listHolds(tx, order.id);
  if (others.length === 0) await moveOrder(tx, order.id, { status: statusByMoney(order) });
  await tellAll(ctx, tx, { order, dispute }, status);
}

async function tellAll(
  ctx: Context,
  tx: Tx,
  { order, dispute }: Disputed,
  what: "opened" | "won" | "lost",
): Promise<void> {
  await record(ctx, tx, {
    actorId: null,
    action: `dispute.${what}`,
    target: { type: "order", id: toId("ord", order.id) },
    source: null,
    details: {
      amount: toDecimal(dispute.amountMinor, order.currency),
      currency: order.currency,
      reason: dispute.reason,
    },
  });
  await tellOfDispute(ctx, tx, order, dispute, what);
}

/** The job: notices get lost, and one dispute waits for a refund. */
export const reconcileDisputes = async (ctx: Context): Promise<void> =>
  eachInTurn(
    await listOpenDisputes(ctx.db),
    ({ id }) => hearOfDispute(ctx, id),
    ({ id }, err) =>
      ctx.log.warn({ dispute: id, err }, "a dispute could not be read; the next round tries again"),
  );
