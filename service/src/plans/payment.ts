import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { ApiError } from "../errors.ts";
import { toId } from "../ids.ts";
import { type PaymentOutcome, PaymentUnknown } from "../outside/payments.ts";
import { lockPlan } from "../people/users.ts";
import {
  deleteOpenPayment,
  findOpenPayment,
  findPayment,
  listOpenPayments,
  movePayment,
  type PaymentMove,
  type PaymentRow,
  stampAsked,
} from "./queries.ts";
import { startPeriod } from "./subscription.ts";

/** Whoever asked more recently may still be waiting for the answer. */
const RECONCILE_AFTER_MS = 60_000;
/** The provider never heard of it by then: nobody waits for it any more. */
const GIVE_UP_UNHEARD_MS = 10 * 60_000;
/** How long somebody may take to confirm. */
const GIVE_UP_UNCONFIRMED_MS = 24 * 3_600_000;

export const isOpen = ({ status }: PaymentRow) => status === "pending" || status === "requires_action";
const providersId = (payment: PaymentRow) => toId("pay", payment.id);

/** Whether a payment for a plan may still go either way. */
export const hasOpenPayment = async (db: Queries, userId: string): Promise<boolean> =>
  (await findOpenPayment(db, userId)) !== undefined;

/** Asks under our row's id, so that asking twice charges once. No answer leaves the payment pending for the job. */
export async function charge(ctx: Context, payment: PaymentRow): Promise<PaymentRow> {
  if (!(await stampAsked(ctx.db, payment.id, ctx.now()))) return afresh(ctx, payment);
  const outcome = await orUnknown(ctx, payment, () =>
    ctx.outside.payments.charge({
      orderId: providersId(payment),
      amountMinor: payment.amountMinor,
      currency: payment.currency,
      methodId: payment.paymentMethodId,
      description: `Stoa ${payment.plan}, one month`,
    }),
  );
  if (outcome?.state === "unknown_method") {
    await deleteOpenPayment(ctx.db, payment.id);
    throw new ApiError("PAYMENT_METHOD_NOT_FOUND");
  }
  return outcome ? settle(ctx, payment, outcome) : payment;
}

const afresh = async (ctx: Context, payment: PaymentRow) =>
  (await findPayment(ctx.db, payment.id)) ?? payment;

async function orUnknown<T>(ctx: Context, payment: PaymentRow, ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof PaymentUnknown)) throw error;
    ctx.log.warn(
      { payment: payment.id, err: error },
      "the payment provider did not answer about a subscription",
    );
    return null;
  }
}

/** Moves an open payment to what the provider says, the plan with it; one that is settled already stays as it is. */
async function settle(ctx: Context, payment: PaymentRow, outcome: PaymentOutcome): Promise<PaymentRow> {
  if (outcome.state === "unknown_method") return payment;
  await ctx.db.transaction().execute(async (tx) => {
    // First the account, as everybody does who changes its plan.
    await lockPlan(tx, payment.userId);
    if (!(await movePayment(tx, payment.id, moveOf(outcome, ctx.now())))) return;
    if (outcome.state === "succeeded") await startPeriod(ctx, tx, payment);
  });
  return afresh(ctx, payment);
}

function moveOf(outcome: Exclude<PaymentOutcome, { state: "unknown_method" }>, settledAt: Date): PaymentMove {
  const { paymentId, method } = outcome;
  const known = { payment_id: paymentId, payment_method: JSON.stringify(method) };
  const settled = { ...known, settled_at: settledAt, action_url: null };
  switch (outcome.state) {
    case "requires_action":
      return { ...known, status: "requires_action", action_url: outcome.url };
    case "succeeded":
      return { ...settled, status: "completed" };
    case "declined":
      return { ...settled, status: "failed", decline_code: outcome.declineCode };
    case "canceled":
      return { ...settled, status: "canceled" };
  }
}

/** Asks the provider how an open payment stands: somebody may just have confirmed it. */
export async function refresh(ctx: Context, payment: PaymentRow): Promise<PaymentRow> {
  const found = await orUnknown(ctx, payment, () => ctx.outside.payments.find(providersId(payment)));
  return found ? settle(ctx, payment, found) : payment;
}

/** Gives up a payment that waits; it stays open when the provider cannot tell, and may turn out to be paid. */
export async function giveUp(ctx: Context, payment: PaymentRow): Promise<PaymentRow> {
  const ended = await orUnknown(ctx, payment, () => ctx.outside.payments.cancel(providersId(payment)));
  return ended ? settle(ctx, payment, ended) : payment;
}

/** Gives up what somebody has not paid yet, for another to decide on their plan. */
export async function giveUpOpen(ctx: Context, userId: string): Promise<void> {
  const open = await findOpenPayment(ctx.db, userId);
  if (open) await giveUp(ctx, open);
}

/** Settles what is open for over a minute: the provider's word counts, silence for long enough ends it. */
export async function reconcilePayments(ctx: Context): Promise<void> {
  const now = ctx.now().getTime();
  for (const payment of await listOpenPayments(ctx.db, new Date(now - RECONCILE_AFTER_MS))) {
    await reconcile(ctx, payment, now - payment.askedAt.getTime());
  }
}

async function reconcile(ctx: Context, payment: PaymentRow, silentMs: number): Promise<void> {
  const { payments } = ctx.outside;
  try {
    const found = await payments.find(providersId(payment));
    const outdated = found?.state === "requires_action" && silentMs > GIVE_UP_UNCONFIRMED_MS;
    const outcome = outdated ? await payments.cancel(providersId(payment)) : found;
    if (outcome) await settle(ctx, payment, outcome);
    else if (silentMs > GIVE_UP_UNHEARD_MS)
      await movePayment(ctx.db, payment.id, { status: "canceled", settled_at: ctx.now() });
  } catch (error) {
    ctx.log.warn(
      { payment: payment.id, err: error },
      "an open payment of a subscription could not be reconciled; the next round tries again",
    );
  }
}
