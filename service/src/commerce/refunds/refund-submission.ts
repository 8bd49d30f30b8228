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
import { notifyOfRefund } from "./refund-emails.ts";
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

/** The refund's id makes a repeated submission safe. Without an answer the refund stays `processing`, and a job asks again. */
export async function submitRefund(ctx: Context, refundId: string): Promise<void> {
  failPoint(ctx, "refund: approved");
  const submitted = await markRefundAsked(ctx.db, refundId, ctx.now());
  failPoint(ctx, "refund: about to be submitted");
  const result = submitted && (await askProvider(ctx, submitted));
  failPoint(ctx, "refund: submitted, not settled");
  if (result) await settleRefund(ctx, refundId, result);
  failPoint(ctx, "refund: settled, no response");
}

const askProvider = (ctx: Context, { id, ...request }: AskedRefund): Promise<RefundResult | null> =>
  nullIfUnreachable(ctx, { refund: id }, () =>
    ctx.integrations.payments.refund({ refundId: toId("refund", id), ...request }),
  );

export type FinalRefundResult = FailedResult | { state: "succeeded"; providerRefundId: string };
type FailedResult = Extract<RefundResult, { state: "failed" }>;

/** Banks may still return a succeeded refund. */
export async function settleRefund(ctx: Context, refundId: string, result: RefundResult): Promise<void> {
  if (result.state === "processing") return;
  const settled = result as FinalRefundResult;
  await ctx.db.transaction().execute(async (tx) => {
    const locked = await lockRefund(tx, refundId);
    if (locked) await settleLockedRefund(ctx, tx, locked, settled);
  });
}

/** The caller's transaction has locked the order. */
export async function settleLockedRefund(
  ctx: Context,
  tx: Tx,
  locked: LockedRefund,
  result: FinalRefundResult,
): Promise<void> {
  if (result.state !== "failed") await completeRefund(ctx, tx, locked, result.providerRefundId);
  else if (locked.refund.status === "succeeded") await recordReturn(ctx, tx, locked, result);
  else await failRefund(ctx, tx, locked, result);
}

/** Seller and marketplace stay debited: the operator still owes the buyer the money in another way. */
async function recordReturn(
  ctx: Context,
  tx: Tx,
  { order, refund }: LockedRefund,
  { failureCode }: FailedResult,
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
  await notifyOfRefund(ctx, tx, refund, "returned");
}

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
  await postRefund(ctx, tx, order, await splitRefundSources(tx, moved));
  const after = await recordRefunded(tx, order, refund.amountMinor);
  if (after.refundedMinor === after.totalMinor)
    await withdrawRefunds(ctx, tx, after, "The purchase is already fully refunded.");
  await publishRefunded(ctx, tx, refund);
  await notifyOfRefund(ctx, tx, refund, "succeeded");
  failPoint(ctx, "refund: settling");
}

/** A dispute opened meanwhile may hold the same money: the refund uses the free amount first, then the holds. */
async function splitRefundSources(tx: Tx, { order, refund }: LockedRefund) {
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
  { providerRefundId, failureCode }: FailedResult,
): Promise<void> {
  const moved = await moveRefund(ctx, tx, locked, "fail", SERVICE_ACTOR, {
    providerRefundId,
    failureCode,
  });
  if (!moved) return;
  ctx.log.warn({ refund: moved.refund.id, failureCode }, "the payment provider refused a refund");
  await notifyOfRefund(ctx, tx, moved.refund, "failed");
}

/** A duplicate payment was never published as a sale, so its refund is not published either. */
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

/** Refunds a payment that bought nothing. The order is locked and posted; the caller submits the returned refund after the commit. */
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

/** Submits a refund again if the provider does not know its id. */
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

/** The process of the first request may have died. */
export async function continueRefund(ctx: Context, id: string): Promise<void> {
  const row = await findUnpaidRefund(ctx.db, id);
  if (row) await forEachRefund(ctx, [row], (refund) => reconcileRefund(ctx, refund));
}

export async function reconcileRefunds(ctx: Context): Promise<void> {
  const rows = await listUnpaidRefunds(ctx.db, new Date(ctx.now().getTime() - ASKED_RECENTLY_MS));
  await forEachRefund(ctx, rows, (row) => reconcileRefund(ctx, row));
}

/** A lost dispute waits for refunds in progress. */
export const reconcileRefundsOf = async (ctx: Context, orderId: string): Promise<void> =>
  forEachRefund(ctx, await listAskedRefundsOf(ctx.db, orderId), (row) => reconcileRefund(ctx, row));

export async function syncRefundFromProvider(ctx: Context, refundId: string): Promise<void> {
  const id = toUuid("refund", refundId);
  const found = id && (await ctx.integrations.payments.findRefund(refundId));
  if (found) await settleRefund(ctx, id, found);
}

export const approveOverdueRefunds = async (ctx: Context): Promise<void> =>
  forEachRefund(ctx, await listOverdueRefunds(ctx.db, ctx.now()), async ({ id }) => {
    const approved = await ctx.db.transaction().execute(async (tx) => {
      const locked = await lockRefund(tx, id);
      // Other refunds reserve the whole rest. The last of them withdraws this one; if one fails, a later job run approves it.
      if (!locked || remainingAmount(locked.order) === 0n) return null;
      return approveRefund(ctx, tx, locked, SERVICE_ACTOR);
    });
    if (approved) await submitRefund(ctx, id);
  });
