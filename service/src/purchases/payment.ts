import { countSale } from "../catalogue/stats.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { findLiveEntitlement, grantUse } from "../entitlements/entitlements.ts";
import { ApiError } from "../errors.ts";
import { announce } from "../events/outbox.ts";
import { toId } from "../ids.ts";
import { toDecimal } from "../money/amount.ts";
import { type PaymentOutcome, PaymentUnknown } from "../outside/payments.ts";
import { toUserId } from "../people/users.ts";
import {
  deleteOpenOrder,
  findOrder,
  listOpenOrders,
  lockOrder,
  moveOrder,
  OPEN,
  type OrderRow,
  stampAsked,
} from "./queries.ts";

/** Whoever asked more recently may still be waiting for the answer. */
const RECONCILE_AFTER_MS = 60_000;
/** The provider never heard of it by then: nobody waits for it any more. */
const GIVE_UP_UNHEARD_MS = 10 * 60_000;
/** How long a buyer may take to confirm. */
const GIVE_UP_UNCONFIRMED_MS = 24 * 3_600_000;

const isOpen = (order: Pick<OrderRow, "status">) => OPEN.includes(order.status);

/** Asks under our row's id, so that asking twice charges once. No answer leaves the order pending for the job. */
export async function charge(ctx: Context, order: OrderRow): Promise<OrderRow> {
  if (!(await stampAsked(ctx.db, order.id, ctx.now()))) return (await findOrder(ctx.db, order.id)) ?? order;
  const outcome = await orUnknown(ctx, order.id, () =>
    ctx.outside.payments.charge({
      orderId: toId("ord", order.id),
      amountMinor: order.totalMinor,
      currency: order.currency,
      methodId: order.paymentMethodId,
      description: order.productTitle,
    }),
  );
  if (outcome?.state === "unknown_method") {
    await deleteOpenOrder(ctx.db, order.id);
    throw new ApiError("PAYMENT_METHOD_NOT_FOUND");
  }
  return outcome ? settle(ctx, order.id, outcome) : order;
}

async function orUnknown<T>(ctx: Context, orderId: string, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof PaymentUnknown)) throw error;
    ctx.log.warn({ order: orderId, err: error }, "the payment provider did not answer; the order stays open");
    return null;
  }
}

/** Moves an open order to what the provider says; one that is settled already stays as it is. */
export async function settle(ctx: Context, orderId: string, outcome: PaymentOutcome): Promise<OrderRow> {
  return ctx.db.transaction().execute(async (tx) => {
    const order = await lockOrder(tx, orderId);
    if (!order) throw new ApiError("ORDER_NOT_FOUND");
    if (!isOpen(order) && !(await isPaidAfterAll(ctx, tx, order, outcome))) return order;
    await applyOutcome(ctx, tx, order, outcome);
    return (await findOrder(tx, orderId))!;
  });
}

/** We gave the order up, and the money came all the same: the buyer gets what was paid for. */
async function isPaidAfterAll(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  outcome: PaymentOutcome,
): Promise<boolean> {
  if (order.status !== "canceled" || outcome.state !== "succeeded") return false;
  if (!(await findLiveEntitlement(tx, order.buyerId, order.productId))) return true;
  ctx.log.error(
    { order: order.id },
    "a canceled order was paid, and its buyer has the product: give it back",
  );
  return false;
}

async function applyOutcome(ctx: Context, tx: Tx, order: OrderRow, outcome: PaymentOutcome): Promise<void> {
  if (outcome.state === "unknown_method") return;
  const paid = { payment_id: outcome.paymentId, payment_method: JSON.stringify(outcome.method) };
  switch (outcome.state) {
    case "succeeded":
      return complete(ctx, tx, order, paid);
    case "requires_action":
      await moveOrder(tx, order.id, { ...paid, status: "requires_action", action_url: outcome.url });
      return;
    case "declined":
      await moveOrder(tx, order.id, { ...paid, status: "failed", decline_code: outcome.declineCode });
      return;
    case "canceled":
      await moveOrder(tx, order.id, { ...paid, status: "canceled" });
  }
}

/** The money is there: the buyer may use the product, the counters move and both sides are told, all at once. */
async function complete(
  ctx: Context,
  tx: Tx,
  order: OrderRow,
  paid: { payment_id: string; payment_method: string },
): Promise<void> {
  const now = ctx.now();
  await moveOrder(tx, order.id, { ...paid, status: "completed", completed_at: now, action_url: null });
  await grantUse(ctx, tx, {
    id: order.id,
    buyerId: order.buyerId,
    productId: order.productId,
    version: order.productVersion,
  });
  await countSale(tx, order.productId, now);
  await announce(ctx, tx, [order.sellerId, order.buyerId], "purchase.completed", {
    order: {
      id: toId("ord", order.id),
      productId: toId("prod", order.productId),
      buyerId: toUserId(order.buyerId),
      amount: toDecimal(order.totalMinor, order.currency),
      currency: order.currency,
    },
  });
}

/** Asks the provider how an open order stands. */
export async function refresh(ctx: Context, order: OrderRow): Promise<OrderRow> {
  if (!isOpen(order)) return order;
  const outcome = await orUnknown(ctx, order.id, () => ctx.outside.payments.find(toId("ord", order.id)));
  return outcome ? settle(ctx, order.id, outcome) : order;
}

/** Gives an open order up for another one; false when the provider cannot tell, so that it must stay. */
export async function replaceOpenOrder(ctx: Context, order: OrderRow): Promise<boolean> {
  const outcome = await orUnknown(ctx, order.id, () => ctx.outside.payments.cancel(toId("ord", order.id)));
  if (!outcome) return false;
  const settled = await settle(ctx, order.id, outcome);
  return !isOpen(settled);
}

/** Settles what is open for over a minute: the provider's word counts, silence for long enough ends it. */
export async function reconcileOrders(ctx: Context): Promise<void> {
  const now = ctx.now().getTime();
  for (const order of await listOpenOrders(ctx, new Date(now - RECONCILE_AFTER_MS))) {
    await reconcile(ctx, order.id, now - order.askedAt.getTime());
  }
}

async function reconcile(ctx: Context, orderId: string, silentMs: number): Promise<void> {
  const { payments } = ctx.outside;
  const providersId = toId("ord", orderId);
  try {
    const found = await payments.find(providersId);
    const outdated = found?.state === "requires_action" && silentMs > GIVE_UP_UNCONFIRMED_MS;
    const outcome = outdated ? await payments.cancel(providersId) : found;
    if (outcome) await settle(ctx, orderId, outcome);
    else if (silentMs > GIVE_UP_UNHEARD_MS) await giveUp(ctx, orderId);
  } catch (error) {
    ctx.log.warn(
      { order: orderId, err: error },
      "an open order could not be reconciled; the next round tries again",
    );
  }
}

const giveUp = (ctx: Context, orderId: string) =>
  ctx.db.transaction().execute(async (tx) => {
    const order = await lockOrder(tx, orderId);
    if (order && isOpen(order)) await moveOrder(tx, orderId, { status: "canceled" });
  });
