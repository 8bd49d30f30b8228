import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { toUuid } from "../ids.ts";
import type { ListedRefund } from "../outside/payments.ts";
import { isPaid, remainingOf } from "./giving-back.ts";
import { findOrder, lockOrder } from "./queries.ts";
import { approveRefund, moveRefund, startRefund, theService } from "./refund-moves.ts";
import { settleLocked } from "./refund-payment.ts";
import { findProviderRefund } from "./refund-queries.ts";

/**
 * Books what was refunded at the payment provider's own dashboard: the buyer has the money, and so the order, the use of the product
 * and the books follow, as after a refund of ours.
 */
export async function syncProviderRefunds(ctx: Context, orderId: string): Promise<void> {
  const id = toUuid("ord", orderId);
  const order = id ? await findOrder(ctx.db, id) : undefined;
  if (!order?.paymentId || !isPaid(order)) return;
  for (const refund of await ctx.outside.payments.listRefundsOf(order.paymentId))
    if (refund.refundId === null && refund.state !== "processing")
      await ctx.db.transaction().execute((tx) => apply(ctx, tx, order.id, refund));
}

async function apply(ctx: Context, tx: Tx, orderId: string, refund: ListedRefund): Promise<void> {
  const order = (await lockOrder(tx, orderId))!;
  const { providerRefundId, amountMinor, state } = refund;
  const known = await findProviderRefund(tx, providerRefundId);
  const failed = { state: "failed", providerRefundId, failureCode: "failed" } as const;
  if (known && state === "failed")
    return settleLocked(ctx, tx, { order: order as never, refund: known }, failed);
  if (known || state !== "succeeded" || !isPaid(order)) return;
  if (amountMinor > remainingOf(order) || refund.currency !== order.currency) {
    // A refund of ours is under way, which the provider will refuse; or the bank had taken it before.
    ctx.log.error(
      { order: orderId, providerRefundId, amountMinor },
      "a refund at the provider's dashboard is more than remains of its order: `payments reconcile` names it until it is booked",
    );
    return;
  }
  const wish = {
    origin: "provider" as const,
    amount_minor: amountMinor,
    reason: "other",
    details: "It was refunded at the payment provider.",
    decide_by: null,
  };
  const started = await startRefund(ctx, tx, order, wish, theService);
  const approved = (await approveRefund(ctx, tx, started, theService))!;
  const asked = (await moveRefund(ctx, tx, approved, "ask", theService))!;
  await settleLocked(ctx, tx, asked, { state: "succeeded", providerRefundId });
}
