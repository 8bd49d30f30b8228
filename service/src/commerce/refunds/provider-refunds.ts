import type { Context } from "../../core/context.ts";
import { toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { ListedRefund } from "../../integrations/payments/payments.ts";
import type { Tx } from "../../platform/db/database.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { ASKED_RECENTLY_MS } from "../charges/provider-errors.ts";
import { findOrder, lockOrder } from "../orders/queries.ts";
import { approveRefund, createRefund, type LockedRefund, moveRefund, SERVICE_ACTOR } from "./refund-moves.ts";
import { findProviderRefund, listOrdersOfProviderRefunds } from "./refund-queries.ts";
import { isPaidOrder, type PaidOrder, remainingAmount } from "./refund-settlement.ts";
import { settleLockedRefund } from "./refund-submission.ts";

export async function syncProviderRefunds(ctx: Context, orderId: string): Promise<void> {
  const id = toUuid("ord", orderId);
  if (id) await syncRefundsOfOrder(ctx, id);
}

/** Banks may take days for a refund, and the webhook about the result may be lost. */
export async function reconcileProviderRefunds(ctx: Context): Promise<void> {
  const before = new Date(ctx.now().getTime() - ASKED_RECENTLY_MS);
  await forEachRow(
    await listOrdersOfProviderRefunds(ctx.db, before),
    ({ orderId }) => syncRefundsOfOrder(ctx, orderId),
    ({ orderId }, err) =>
      ctx.log.warn(
        { order: orderId, err },
        "refunds at the provider's dashboard could not be read; the next job run tries again",
      ),
  );
}

async function syncRefundsOfOrder(ctx: Context, id: string): Promise<void> {
  const order = await findOrder(ctx.db, id);
  if (!order?.paymentId || !isPaidOrder(order)) return;
  for (const refund of await ctx.integrations.payments.listRefundsOf(order.paymentId))
    if (refund.refundId === null)
      await ctx.db.transaction().execute((tx) => applyProviderRefund(ctx, tx, order.id, refund));
}

async function applyProviderRefund(
  ctx: Context,
  tx: Tx,
  orderId: string,
  listed: ListedRefund,
): Promise<void> {
  const order = await lockOrder(tx, orderId);
  if (!order || !isPaidOrder(order)) return;
  const refund = await findProviderRefund(tx, listed.providerRefundId);
  const locked = refund ? { order, refund } : await insertProviderRefund(ctx, tx, order, listed);
  if (!locked || listed.state === "processing") return;
  const { providerRefundId, failureCode } = listed;
  await settleLockedRefund(
    ctx,
    tx,
    locked,
    listed.state === "succeeded"
      ? { state: "succeeded", providerRefundId }
      : { state: "failed", providerRefundId, failureCode: failureCode ?? "failed" },
  );
}

/** A refund that had failed before the first sync moved no money and gets no row. */
async function insertProviderRefund(
  ctx: Context,
  tx: Tx,
  order: PaidOrder,
  { providerRefundId, amountMinor, currency, state }: ListedRefund,
): Promise<LockedRefund | null> {
  if (state === "failed") return null;
  if (amountMinor > remainingAmount(order) || currency !== order.currency) {
    // Either the provider will refuse this refund because ours is in progress, or a dispute took the amount before.
    ctx.log.error(
      { order: order.id, providerRefundId, amountMinor },
      "a refund at the provider's dashboard is more than remains of its order: `payments reconcile` names it until it is booked",
    );
    return null;
  }
  const input = {
    origin: "provider" as const,
    amountMinor,
    reason: "other",
    details: "It was refunded at the payment provider.",
    decideBy: null,
  };
  const started = await createRefund(ctx, tx, order, input, SERVICE_ACTOR);
  const approved = required(await approveRefund(ctx, tx, started, SERVICE_ACTOR), "the refund");
  return moveRefund(ctx, tx, approved, "ask", SERVICE_ACTOR, { providerRefundId });
}
