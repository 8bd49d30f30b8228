import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { ApiError } from "../errors.ts";
import { defaultMethodOf, mayPayBy } from "../payments/methods.ts";
import { lockPlan } from "../people/users.ts";
import { charge } from "./payment.ts";
import { priceMinorOf } from "./plan-book.ts";
import {
  findOpenPayment,
  findPayment,
  findSubscription,
  insertPayment,
  listDueRenewals,
  type PaymentRow,
  type SubscriptionRow,
} from "./queries.ts";
import { countFailedTry, isPaid, monthAfter } from "./subscription.ts";

/**
 * Asks for the next month of every plan whose period has ended, and again for those whose payment failed. A plan is due by what its
 * row says, so that a round which was missed is made up for by the next, and of two workers one finds it due.
 */
export async function renewSubscriptions(ctx: Context): Promise<void> {
  for (const { userId } of await listDueRenewals(ctx.db, ctx.now())) {
    try {
      await renew(ctx, userId);
    } catch (error) {
      ctx.log.error({ user: userId, err: error }, "a plan could not be renewed; the next round tries again");
    }
  }
}

async function renew(ctx: Context, userId: string): Promise<void> {
  const payment = await ctx.db.transaction().execute(async (tx) => {
    await lockPlan(tx, userId);
    return beginRenewal(ctx, tx, userId);
  });
  if (!payment) return;
  try {
    await charge(ctx, payment);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "PAYMENT_METHOD_NOT_FOUND") throw error;
    await ctx.db.transaction().execute(async (tx) => {
      await lockPlan(tx, userId);
      await countFailedTry(ctx, tx, payment);
    });
  }
}

/**
 * Writes the payment for the month that follows the paid one, under the account's lock; null when none is due. A month that is over
 * already, because nobody asked for so long, is not charged: the new one then begins now.
 */
export async function beginRenewal(
  ctx: Context,
  tx: Tx,
  userId: string,
  chosenMethodId?: string | null,
): Promise<PaymentRow | null> {
  const now = ctx.now();
  const subscription = await findSubscription(tx, userId);
  if (!subscription || subscription.nextPlan || isPaid(subscription, now)) return null;
  if (!chosenMethodId && subscription.nextTryAt > now) return null;
  const { currency } = ctx.config.planBook;
  const priceMinor = priceMinorOf(ctx.config.planBook, subscription.plan);
  if (!priceMinor || (await findOpenPayment(tx, userId))) return null;
  const isOver = monthAfter(subscription.periodEnd, subscription.anchorDay) <= now;
  const methodId = chosenMethodId ?? (await methodOf(ctx, subscription));
  if (!methodId) {
    await countFailedTry(ctx, tx, { ...subscription, priceMinor, currency });
    return null;
  }
  const id = ctx.newId();
  await insertPayment(tx, {
    id,
    user_id: userId,
    plan: subscription.plan,
    price_minor: priceMinor,
    amount_minor: priceMinor,
    currency,
    payment_method_id: methodId,
    renews_from: isOver ? now : subscription.periodEnd,
    owner_present: Boolean(chosenMethodId),
    created_at: now,
  });
  return (await findPayment(tx, id))!;
}

/** The plan's own method; after it failed or was removed, the one that its owner would pay by now, if any. */
async function methodOf(
  ctx: Context,
  { userId, tries, paymentMethodId }: SubscriptionRow,
): Promise<string | null> {
  const own = (await mayPayBy(ctx, userId, paymentMethodId)) ? paymentMethodId : null;
  return tries === 0 && own ? own : ((await defaultMethodOf(ctx, userId)) ?? own);
}
