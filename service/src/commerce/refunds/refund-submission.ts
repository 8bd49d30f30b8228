import type { Context } from "../../core/context.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { RefundResult } from "../../integrations/payments/payments.ts";
import type { Tx } from "../../platform/db/database.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { ASKED_RECENTLY_MS, nullIfUnreachable } from "../charges/provider-errors.ts";
import { postRefund, postRefundReturned } from "../orders/order-postings.ts";
import { listHolds, setHold } from "./dispute-queries.ts";
import { emailRefund } from "./refund-emails.ts";
import {
  approveRefund,
  auditRefund,
  createRefund,
  type LockedRefund,
  lockRefund,
  moveRefund,
  SERVICE_ACTOR,
  withdrawRefunds,
} from "./refund-moves.ts";
import {
  type AskedRefund,
  findRefundRow,
  findUnpaidRefund,
  listAskedRefundsOf,
  listOverdueRefunds,
  listUnpaidRefunds,
  markRefundAsked,
  markReturned,
  type RefundRow,
} from "./refund-queries.ts";
import { recordRefunded, remainingAmount } from "./refund-settlement.ts";

/**
 * Submits an approved refund to the provider under its id, so that a repeat refunds once. Without an answer it stays `processing` for
 * the job.
 */
export async function submitRefund(ctx: Context, refundId: string): Promise<void> {
  failPoint(ctx, "refund: approved");
  const asked = await markRefundAsked(ctx.db, refundId, ctx.now());
  failPoint(ctx, "refund: about to be asked for");
  const outcome = asked && (await askProvider(ctx, asked));
  failPoint(ctx, "refund: given back, not settled");
  if (outcome) await settleRefund(ctx, refundId, outcome);
  failPoint(ctx, "refund: settled, not answered");
}

const askProvider = (ctx: Context, { id, ...request }: AskedRefund): Promise<RefundResult | null> =>
  nullIfUnreachable(ctx, { refund: id }, () =>
    ctx.integrations.payments.refund({ refundId: toId("refund", id), ...request }),
  );

export type FinalRefundOutcome = FailedOutcome | { state: "succeeded"; providerRefundId: string };
type FailedOutcome = Extract<RefundResult, { state: "failed" }>;

/** Applies the provider's answer to a refund in progress, and to all that depends on it. A succeeded refund may still be returned. */
export async function settleRefund(ctx: Context, refundId: string, outcome: RefundResult): Promise<void> {
  if (outcome.state === "processing") return;
  const settled = outcome as FinalRefundOutcome;
  await ctx.db.transaction().execute(async (tx) => {
    const locked = await lockRefund(tx, refundId);
    if (locked) await settleLockedRefund(ctx, tx, locked, settled);
  });
}

/** In the transaction of the caller, who holds the order's lock. */
export async function settleLockedRefund(
  ctx: Context,
  tx: Tx,
  locked: LockedRefund,
  outcome: FinalRefundOutcome,
): Promise<void> {
  if (outcome.state !== "failed") await completeRefund(ctx, tx, locked, outcome.providerRefundId);
  else if (locked.refund.status === "succeeded") await recordReturn(ctx, tx, locked, outcome);
  else await failRefund(ctx, tx, locked, outcome);
}

/**
 * The buyer's bank returned a refund. Seller and marketplace stay debited, because the operator still owes the buyer the money in
 * another way.
 */
async function recordReturn(
  ctx: Context,
  tx: Tx,
  { order, refund }: LockedRefund,
  { failureCode }: FailedOutcome,
): Promise<void> {
  const returnedAt = ctx.now();
  if (!(await markReturned(tx, refund.id, failureCode, returnedAt))) return;
  const { id: refundId, amountMinor } = refund;
  await postRefundReturned(ctx, tx, order, { refundId, amountMinor, returnedAt });
  await auditRefund(
    ctx,
    tx,
    required(await findRefundRow(tx, refund.id), "the refund"),
    "refund.returned",
    SERVICE_ACTOR,
  );
  ctx.log.error(
    { refund: refund.id, failureCode },
    "the bank returned a refund: pay the buyer in another way",
  );
  await emailRefund(ctx, tx, refund, "returned");
}

/** The buyer has the money: ledger, order, entitlement, event and emails, in one transaction. */
async function completeRefund(
  ctx: Context,
  tx: Tx,
  locked: LockedRefund,
  providerRefundId: string,
): Promise<void> {
  const moved = await moveRefund(ctx, tx, locked, "succeed", SERVICE_ACTOR, {
    providerRefundId,
  });
  if (!moved) return;
  const { order, refund } = moved;
  await postRefund(ctx, tx, order, await splitTaking(tx, moved));
  const after = await recordRefunded(tx, order, refund.amountMinor);
  if (after.refundedMinor === after.totalMinor)
    await withdrawRefunds(ctx, tx, after, "All of it is given back already.");
  await publishRefunded(ctx, tx, refund);
  await emailRefund(ctx, tx, refund, "succeeded");
  failPoint(ctx, "refund: settling");
}

/**
 * Whose money pays for a refund. A dispute that was opened meanwhile may hold the same money: the refund takes the free amount first,
 * then the rest from the holds.
 */
async function splitTaking(tx: Tx, { order, refund }: LockedRefund) {
  const holds = order.status === "disputed" ? await listHolds(tx, order.id) : [];
  const takenMinor = holds.reduce((sum, { heldMinor }) => sum + heldMinor, order.refundedMinor);
  const free = order.totalMinor - takenMinor;
  const heldMinor = refund.amountMinor > free ? refund.amountMinor - free : 0n;
  let toTake = heldMinor;
  for (const hold of holds) {
    const part = toTake < hold.heldMinor ? toTake : hold.heldMinor;
    if (part > 0n) await setHold(tx, hold.id, hold.heldMinor - part);
    toTake -= part;
  }
  const { id: refundId, amountMinor } = refund;
  return {
    refundId,
    succeededAt: required(refund.completedAt, "the date of a completed refund"),
    takenMinor,
    amountMinor,
    heldMinor,
  };
}

/** No money moved: the buyer keeps the product and may request again. */
async function failRefund(
  ctx: Context,
  tx: Tx,
  locked: LockedRefund,
  { providerRefundId, failureCode }: FailedOutcome,
): Promise<void> {
  const moved = await moveRefund(ctx, tx, locked, "fail", SERVICE_ACTOR, {
    providerRefundId,
    failureCode,
  });
  if (!moved) return;
  ctx.log.warn(
    { refund: moved.refund.id, failureCode },
    "the payment provider could not give a payment back",
  );
  await emailRefund(ctx, tx, moved.refund, "failed");
}

/** A duplicate payment was never announced as a sale, so its refund is not announced either. */
async function publishRefunded(ctx: Context, tx: Tx, refund: RefundRow): Promise<void> {
  if (refund.origin === "service") return;
  await publishEvent(ctx, tx, [refund.sellerId, refund.buyerId], "purchase.refunded", {
    refund: {
      id: toId("refund", refund.id),
      orderId: toId("ord", refund.orderId),
      amount: toDecimal(refund.amountMinor, refund.currency),
      reason: refund.reason,
    },
  });
}

/** Refunds a payment that bought nothing. The order is locked and posted. Returns the refund to submit after the commit. */
export async function createAutomaticRefund(
  ctx: Context,
  tx: Tx,
  order: LockedRefund["order"],
): Promise<string> {
  const started = await createRefund(
    ctx,
    tx,
    order,
    {
      origin: "service",
      amountMinor: order.totalMinor,
      reason: "duplicate",
      details:
        "The payment came for a product that its buyer owns already or may not have any more, or after they had left.",
      decideBy: null,
    },
    SERVICE_ACTOR,
  );
  await approveRefund(ctx, tx, started, SERVICE_ACTOR);
  return started.refund.id;
}

/** Settles a refund in progress by the provider's state. A refund that the provider does not know is submitted again under its id. */
async function reconcileRefund(
  ctx: Context,
  { id, askedAt }: { id: string; askedAt: Date | null },
): Promise<void> {
  const found = askedAt && (await ctx.integrations.payments.findRefund(toId("refund", id)));
  if (found) await settleRefund(ctx, id, found);
  else await submitRefund(ctx, id);
}

const forEachRefund = <Row extends { id: string }>(
  { log }: Context,
  rows: Row[],
  work: (row: Row) => Promise<void>,
): Promise<void> =>
  forEachRow(rows, work, ({ id }, err) =>
    log.warn({ refund: id, err }, "a refund could not be continued; the next job run tries again"),
  );

/** Continues one refund at once, because its process may have died. */
export async function continueRefund(ctx: Context, id: string): Promise<void> {
  const row = await findUnpaidRefund(ctx.db, id);
  if (row) await forEachRefund(ctx, [row], (refund) => reconcileRefund(ctx, refund));
}

/** The job continues refunds that a crash interrupted. */
export async function reconcileRefunds(ctx: Context): Promise<void> {
  const rows = await listUnpaidRefunds(ctx.db, new Date(ctx.now().getTime() - ASKED_RECENTLY_MS));
  await forEachRefund(ctx, rows, (row) => reconcileRefund(ctx, row));
}

/** Continues the refunds of one order at once, because a lost dispute waits for them. */
export const reconcileRefundsOf = async (ctx: Context, orderId: string): Promise<void> =>
  forEachRefund(ctx, await listAskedRefundsOf(ctx.db, orderId), (row) => reconcileRefund(ctx, row));

/** Settles a refund by the provider's state, after its webhook. */
export async function syncRefundFromProvider(ctx: Context, refundId: string): Promise<void> {
  const id = toUuid("refund", refundId);
  const found = id && (await ctx.integrations.payments.findRefund(refundId));
  if (found) await settleRefund(ctx, id, found);
}

/** The job: approves refunds that no seller decided in time. */
export const approveOverdueRefunds = async (ctx: Context): Promise<void> =>
  forEachRefund(ctx, await listOverdueRefunds(ctx.db, ctx.now()), async ({ id }) => {
    const approved = await ctx.db.transaction().execute(async (tx) => {
      const locked = await lockRefund(tx, id);
      // Other refunds reserve the whole rest: it is withdrawn with the last of them, or approved when one fails.
      if (!locked || remainingAmount(locked.order) === 0n) return null;
      return approveRefund(ctx, tx, locked, SERVICE_ACTOR);
    });
    if (approved) await submitRefund(ctx, id);
  });
