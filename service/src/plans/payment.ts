import type { Context } from "../context.ts";
import type { Queries, Tx } from "../db/database.ts";
import { toId, toUuid } from "../ids.ts";
import { post } from "../ledger/ledger.ts";
import { attemptsOf, type Settlement, standingBy } from "../payments/attempts.ts";
import { findAccount } from "../people/accounts.ts";
import { lockPlan, toUserId } from "../people/users.ts";
import {
  deleteOpenPayment,
  findOpenPayment,
  findPayment,
  findPlan,
  findSubscription,
  hasLaterPayment,
  listGivenUpPayments,
  listOpenPayments,
  movePayment,
  notePaymentMismatch,
  type PaymentMove,
  type PaymentRow,
  stampAsked,
  stampAskedAfter,
} from "./queries.ts";
import { askToConfirm, continuePeriod, countFailedTry, startPeriod } from "./subscription.ts";

export const isOpen = ({ status }: PaymentRow) => status === "pending" || status === "requires_action";

/** Whether a payment for a plan may still go either way. */
export const hasOpenPayment = async (db: Queries, userId: string): Promise<boolean> =>
  (await findOpenPayment(db, userId)) !== undefined;

const attempts = attemptsOf<PaymentRow>({
  noun: "payment",
  providersId: (id) => toId("pay", id),
  requestOf: (payment) => ({
    orderId: toId("pay", payment.id),
    amountMinor: payment.amountMinor,
    currency: payment.currency,
    methodId: payment.paymentMethodId,
    userId: toUserId(payment.userId),
    description: `Stoa ${payment.plan}, one month`,
    buyer: payment.ownerPresent ? "present" : "absent",
    recurs: true,
  }),
  isOpen,
  // Money may come for a payment that was given up.
  isFinal: (payment) => !isOpen(payment) && payment.status !== "canceled",
  find: findPayment,
  listOpen: listOpenPayments,
  stampAsked,
  listGivenUp: listGivenUpPayments,
  stampAskedAfter,
  deleteOpen: deleteOpenPayment,
  settle,
  abandon: async (ctx, id) => {
    await movePayment(ctx.db, id, { status: "canceled", settled_at: ctx.now() });
  },
  noteMismatch: notePaymentMismatch,
});

export const { charge, refresh, giveUp, reconcile: reconcilePayments } = attempts;

/** The provider says that something changed of a charge; when it is for a plan, asks what. */
export async function hearOfPlanPayment(ctx: Context, paymentId: string): Promise<void> {
  const id = toUuid("pay", paymentId);
  if (id) await attempts.hear(ctx, id);
}

/**
 * Moves an open payment to what the provider says, the plan and the books with it, and one that was given up to paid; one that is settled
 * already stays as it is.
 */
async function settle(ctx: Context, id: string, settlement: Settlement): Promise<PaymentRow> {
  const payment = (await findPayment(ctx.db, id))!;
  await ctx.db.transaction().execute(async (tx) => {
    // First the account, as everybody does who changes its plan.
    await lockPlan(tx, payment.userId);
    if (!(await movePayment(tx, id, moveOf(settlement, ctx.now())))) return takeLate(ctx, tx, id, settlement);
    if (payment.renewsFrom) await applyRenewal(ctx, tx, payment, settlement);
    else if (settlement.state === "succeeded") await startPeriod(ctx, tx, payment);
    if (settlement.state === "succeeded") await book(ctx, tx, payment, settlement.feeMinor ?? 0n);
  });
  return (await findPayment(ctx.db, id)) ?? payment;
}

/** Money for a payment that we had given up pays for what it was meant for, unless that is paid, or its owner gone, by now. */
async function takeLate(ctx: Context, tx: Tx, id: string, settlement: Settlement): Promise<void> {
  const payment = await findPayment(tx, id);
  if (payment?.status !== "canceled" || settlement.state !== "succeeded") return;
  if (await isNeededNoMore(tx, payment)) {
    ctx.log.error(
      { payment: id, paymentId: settlement.paymentId },
      "money came late for a plan that is not to be had by it any more: give it back at the payment provider",
    );
    return;
  }
  await movePayment(tx, id, moveOf(settlement, ctx.now()), ["canceled"]);
  const { renewsFrom } = payment;
  const subscription = await findSubscription(tx, payment.userId);
  if (renewsFrom && subscription?.periodEnd.getTime() === renewsFrom.getTime())
    await continuePeriod(tx, payment, renewsFrom);
  else await startPeriod(ctx, tx, payment);
  await book(ctx, tx, payment, settlement.feeMinor ?? 0n);
}

/** Paid otherwise since, or given by an operator, or closed with the account. */
async function isNeededNoMore(tx: Tx, payment: PaymentRow): Promise<boolean> {
  const account = await findAccount(tx, payment.userId);
  if (!account || account.closedAt || (await hasLaterPayment(tx, payment))) return true;
  const { plan } = await findPlan(tx, payment.userId);
  return plan !== "free" && (await findSubscription(tx, payment.userId)) === undefined;
}

/** Its owner is not there when a plan is renewed: what they have to know is written to them. */
async function applyRenewal(
  ctx: Context,
  tx: Tx,
  payment: PaymentRow,
  settlement: Settlement,
): Promise<void> {
  switch (settlement.state) {
    case "succeeded":
      return continuePeriod(tx, payment, payment.renewsFrom!);
    case "requires_action":
      if (payment.status !== "requires_action") await askToConfirm(ctx, tx, payment, settlement.url);
      return;
    case "declined":
      return countFailedTry(ctx, tx, payment, settlement.declineCode);
    case "canceled":
      return countFailedTry(ctx, tx, payment);
  }
}

/** What a plan costs is the platform's, but for what the provider kept. */
const book = (ctx: Context, tx: Tx, { id, amountMinor, currency }: PaymentRow, processorFee: bigint) =>
  post(ctx, tx, {
    kind: "subscription",
    sourceId: id,
    currency,
    entries: [
      { account: "provider_clearing", amountMinor: processorFee - amountMinor },
      { account: "processor_fees", amountMinor: -processorFee },
      { account: "platform_revenue", amountMinor },
    ],
  });

function moveOf(settlement: Settlement, now: Date): PaymentMove {
  if (settlement.state !== "succeeded") {
    const standing = standingBy(settlement);
    const isSettled = standing.status === "failed" || standing.status === "canceled";
    return { ...standing, ...(isSettled && { settled_at: now }) };
  }
  return {
    payment_id: settlement.paymentId,
    payment_method: JSON.stringify(settlement.method),
    action_url: null,
    status: "completed",
    settled_at: now,
  };
}

/** Gives up what somebody has not paid yet, for another to decide on their plan. */
export async function giveUpOpen(ctx: Context, userId: string): Promise<void> {
  const open = await findOpenPayment(ctx.db, userId);
  if (open) await giveUp(ctx, open);
}
