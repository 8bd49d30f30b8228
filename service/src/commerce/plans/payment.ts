import { findAccount } from "../../accounts/people/accounts.ts";
import { lockPlan, toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import {
  attemptsOf,
  isLeftUnconfirmed,
  type Paid,
  type Settlement,
  standingBy,
  type Unpaid,
} from "../charges/attempts.ts";
import { post } from "../ledger/ledger.ts";
import {
  deleteOpenPayment,
  findOpenPayment,
  findPayment,
  findPlan,
  findSubscription,
  hasLaterPayment,
  listGivenUpPayments,
  listOpenPayments,
  lockPayment,
  movePayment,
  notePaymentMismatch,
  noteUnneeded,
  type PaymentMove,
  type PaymentRow,
  stampAsked,
  stampAskedAfter,
  takeReceiptNumber,
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
  abandon,
  noteMismatch: notePaymentMismatch,
});

export const { charge, refresh, giveUp, reconcile: reconcilePayments } = attempts;

/**
 * Asks for a renewal. Its owner is not there to be told that the provider does not know their method: that counts as a try, with the
 * row gone, and the next one may find another method.
 */
export async function chargeRenewal(ctx: Context, payment: PaymentRow): Promise<void> {
  try {
    await charge(ctx, payment);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== "PAYMENT_METHOD_NOT_FOUND") throw error;
    await ctx.db.transaction().execute(async (tx) => {
      await lockPlan(tx, payment.userId);
      await countFailedTry(ctx, tx, payment);
    });
  }
}

/** Nobody but we would ask for a renewal again, and never under another id. What begins a plan is given up: whoever wants it asks. */
async function abandon(ctx: Context, id: string): Promise<void> {
  const payment = await findPayment(ctx.db, id);
  if (payment?.renewsFrom) return chargeRenewal(ctx, payment);
  await movePayment(ctx.db, id, { status: "canceled", settled_at: ctx.now() });
}

/** The provider says that something changed of a charge; when it is for a plan, asks what. */
export async function hearOfPlanPayment(ctx: Context, paymentId: string): Promise<void> {
  const id = toUuid("pay", paymentId);
  if (id) await attempts.hear(ctx, id);
}

/** Moves an open payment to what the provider says, the plan and the books with it; one that is settled already stays as it is. */
async function settle(ctx: Context, id: string, settlement: Settlement): Promise<PaymentRow> {
  const known = (await findPayment(ctx.db, id))!;
  await ctx.db.transaction().execute(async (tx) => {
    // First the account, as everybody does who changes its plan.
    await lockPlan(tx, known.userId);
    const payment = await lockPayment(tx, id);
    if (payment && isOpen(payment)) await apply(ctx, tx, payment, settlement);
    else if (payment?.status === "canceled") await takeLate(ctx, tx, payment, settlement);
  });
  return (await findPayment(ctx.db, id)) ?? known;
}

async function apply(ctx: Context, tx: Tx, payment: PaymentRow, settlement: Settlement): Promise<void> {
  if (settlement.state === "succeeded") return complete(ctx, tx, payment, settlement);
  if (payment.renewsFrom) await tellOfRenewal(ctx, tx, payment, settlement);
  await movePayment(tx, payment.id, moveOf(settlement, ctx.now()));
}

/** Its owner is not there when a plan is renewed: what they have to know is written to them. */
async function tellOfRenewal(ctx: Context, tx: Tx, payment: PaymentRow, settlement: Unpaid): Promise<void> {
  switch (settlement.state) {
    case "requires_action":
      if (payment.status !== "requires_action") await askToConfirm(ctx, tx, payment, settlement.url);
      return;
    case "declined":
      return countFailedTry(ctx, tx, payment, settlement.declineCode);
    case "canceled":
      // Sooner it was its owner, who pays in another way or not at all.
      if (isLeftUnconfirmed(payment.createdAt, ctx.now())) await countFailedTry(ctx, tx, payment);
  }
}

/**
 * Money for a payment that we had given up pays for what it was meant for, unless that is paid, or its owner gone, by now. What came in
 * vain stays so, because somebody may be giving it back.
 */
async function takeLate(ctx: Context, tx: Tx, payment: PaymentRow, settlement: Settlement): Promise<void> {
  const { id, unneededPaymentId } = payment;
  if (settlement.state !== "succeeded") {
    if (settlement.state === "canceled" && unneededPaymentId) await noteUnneeded(tx, id, null);
    return;
  }
  if (unneededPaymentId) return;
  if (await isNeededNoMore(tx, payment)) return takeInVain(ctx, tx, id, settlement);
  const subscription = await findSubscription(tx, payment.userId);
  const goesOn = subscription?.periodEnd.getTime() === payment.renewsFrom?.getTime();
  await complete(ctx, tx, goesOn ? payment : { ...payment, renewsFrom: null }, settlement);
}

async function takeInVain({ log }: Context, tx: Tx, id: string, { paymentId }: Paid): Promise<void> {
  await noteUnneeded(tx, id, paymentId);
  log.error(
    { payment: id, paymentId },
    "money came late for a plan that is not to be had by it any more: give it back at the payment provider",
  );
}

/** Paid otherwise since, or given by an operator, or closed with the account. */
async function isNeededNoMore(tx: Tx, payment: PaymentRow): Promise<boolean> {
  const account = await findAccount(tx, payment.userId);
  if (!account || account.closedAt || (await hasLaterPayment(tx, payment))) return true;
  const { plan } = await findPlan(tx, payment.userId);
  return plan !== "free" && (await findSubscription(tx, payment.userId)) === undefined;
}

/** The month is paid: the plan holds for it, and the books and the receipt say so. */
async function complete(ctx: Context, tx: Tx, payment: PaymentRow, paid: Paid): Promise<void> {
  const now = ctx.now();
  const { start, end } = payment.renewsFrom
    ? await continuePeriod(ctx, tx, payment, payment.renewsFrom)
    : await startPeriod(ctx, tx, payment);
  await book(ctx, tx, payment, paid.feeMinor ?? 0n);
  await movePayment(tx, payment.id, {
    status: "completed",
    payment_id: paid.paymentId,
    payment_method: JSON.stringify(paid.method),
    settled_at: now,
    action_url: null,
    processor_fee_minor: paid.feeMinor,
    period_start: start,
    period_end: end,
    receipt_year: now.getUTCFullYear(),
    // Last, because everybody's payments wait for their numbers until this one is committed.
    receipt_number: await takeReceiptNumber(tx, now.getUTCFullYear()),
  });
  failPoint(ctx, "payment: settling");
}

/** What a plan costs is the platform's, but for its tax and what the provider kept. */
const book = (
  ctx: Context,
  tx: Tx,
  { id, amountMinor, taxMinor, currency }: PaymentRow,
  processorFee: bigint,
) =>
  post(ctx, tx, {
    kind: "subscription",
    sourceId: id,
    currency,
    entries: [
      { account: "provider_clearing", amountMinor: processorFee - amountMinor },
      { account: "processor_fees", amountMinor: -processorFee },
      { account: "platform_revenue", amountMinor: amountMinor - taxMinor },
      { account: "tax_payable", amountMinor: taxMinor },
    ],
  });

function moveOf(unpaid: Unpaid, now: Date): PaymentMove {
  const standing = standingBy(unpaid);
  const isSettled = standing.status === "failed" || standing.status === "canceled";
  return { ...standing, ...(isSettled && { settled_at: now }) };
}

/** Gives up what somebody has not paid yet, for another to decide on their plan. */
export async function giveUpOpen(ctx: Context, userId: string): Promise<void> {
  const open = await findOpenPayment(ctx.db, userId);
  if (open) await giveUp(ctx, open);
}
