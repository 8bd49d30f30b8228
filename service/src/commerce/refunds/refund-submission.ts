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
 * Asks the provider to give back what is approved, under the refund's id, so that asking twice gives back once. No answer leaves it
 * processing for the job.
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

/** What is not processing any more. */
export type FinalRefundOutcome = FailedOutcome | { state: "succeeded"; providerRefundId: string };
type FailedOutcome = Extract<RefundResult, { state: "failed" }>;

/**
 * Moves a refund that is under way to what the provider says, and all that hangs on it; a settled one stays as it is, unless it comes
 * back.
 */
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
 * Banks may send back what was given. It stays taken from those who gave it, because the buyer must still get it, in another way: which
 * one no rule knows.
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
    "a refund that had succeeded came back: see to it that the buyer gets it in another way",
  );
  await emailRefund(ctx, tx, refund, "returned");
}

/** The money is back with the buyer: books, order, use, lists, programs and people learn of it all at once. */
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
 * From whom the money of a refund is taken. It may have been under way when a dispute was opened, which then holds the same money:
 * what nobody holds goes first, the rest is taken out of the hold.
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

/** Nothing moved: the buyer keeps the product, and may ask again. */
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

/** What came in for nothing goes back unasked; the order is locked and booked. Answers what is to be carried out after the commit. */
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

/** Asks how a refund stands that is under way; one that the provider never heard of is asked for again, under the same id. */
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
    log.warn({ refund: id, err }, "a refund could not be carried on; the next round tries again"),
  );

/** One that is on its way, at once: its process may have died. */
export async function continueRefund(ctx: Context, id: string): Promise<void> {
  const row = await findUnpaidRefund(ctx.db, id);
  if (row) await forEachRefund(ctx, [row], (refund) => reconcileRefund(ctx, refund));
}

/** The job continues refunds that a crash interrupted. */
export async function reconcileRefunds(ctx: Context): Promise<void> {
  const rows = await listUnpaidRefunds(ctx.db, new Date(ctx.now().getTime() - ASKED_RECENTLY_MS));
  await forEachRefund(ctx, rows, (row) => reconcileRefund(ctx, row));
}

/** Those of one order at once, because something else waits for how they end. */
export const reconcileRefundsOf = async (ctx: Context, orderId: string): Promise<void> =>
  forEachRefund(ctx, await listAskedRefundsOf(ctx.db, orderId), (row) => reconcileRefund(ctx, row));

/** The provider tells that it knows more of a refund, which it names as we did. */
export async function syncRefundFromProvider(ctx: Context, refundId: string): Promise<void> {
  const id = toUuid("refund", refundId);
  const found = id && (await ctx.integrations.payments.findRefund(refundId));
  if (found) await settleRefund(ctx, id, found);
}

/** The job: what no seller decided in time is approved. */
export const approveOverdueRefunds = async (ctx: Context): Promise<void> =>
  forEachRefund(ctx, await listOverdueRefunds(ctx.db, ctx.now()), async ({ id }) => {
    const approved = await ctx.db.transaction().execute(async (tx) => {
      const locked = await lockRefund(tx, id);
      // All that remains is on its way by other refunds: it is withdrawn with the last of them, or approved when one fails.
      if (!locked || remainingAmount(locked.order) === 0n) return null;
      return approveRefund(ctx, tx, locked, SERVICE_ACTOR);
    });
    if (approved) await submitRefund(ctx, id);
  });
