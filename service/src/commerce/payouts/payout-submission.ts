import { findAccount } from "../../accounts/people/accounts.ts";
import type { Context } from "../../core/context.ts";
import { DAY_MS } from "../../core/dates.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { PayoutRequest, PayoutResult } from "../../integrations/payments/payments.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { ASKED_RECENTLY_MS, nullIfUnreachable } from "../charges/provider-errors.ts";
import { SELLER_BANNED } from "./payout-email.ts";
import { settlePayout } from "./payout-settlement.ts";
import {
  findPayout,
  listAskedBefore,
  listReturnable,
  listWaitingForBalance,
  markPayoutAsked,
  type PayoutRow,
  RETURNED_LATE_WITHIN_MS,
  RETURNED_WITHIN_MS,
} from "./queries.ts";

/** Meanwhile sales may settle at the provider, or the operator may add to the balance. */
const RECHECK_WAITING_MS = 3_600_000;
/** Banks take days, and the webhook usually comes first. */
const RECHECK_IN_TRANSIT_MS = 10 * 60_000;
const RECHECK_COMPLETED_MS = DAY_MS;
const RECHECK_LATE_MS = 7 * DAY_MS;

/** The amount returns to the balance and stays there until the ban ends. */
const SELLER_BANNED_RESULT: PayoutResult = {
  state: "failed",
  providerPayoutId: null,
  failureCode: SELLER_BANNED,
};

const providerReference = (id: string) => toId("payout", id);

const requestOf = (payout: PayoutRow): PayoutRequest => ({
  payoutId: providerReference(payout.id),
  destination: payout.destination,
  amountMinor: payout.amountMinor,
  currency: payout.currency,
});

/**
 * The payout's id makes a repeated submission safe. Without an answer the payout stays open for the job. A seller banned since the
 * creation is not paid.
 */
export async function submitPayout(ctx: Context, payout: PayoutRow): Promise<PayoutRow> {
  failPoint(ctx, "payout: created, not submitted");
  if ((await findAccount(ctx.db, payout.sellerId))?.bannedAt)
    return settlePayout(ctx, payout.id, SELLER_BANNED_RESULT);
  await markPayoutAsked(ctx.db, payout.id, ctx.now());
  failPoint(ctx, "payout: about to be submitted");
  const result = await nullIfUnreachable(ctx, { payout: payout.id }, () =>
    ctx.integrations.payments.payOut(requestOf(payout)),
  );
  failPoint(ctx, "payout: submitted, not settled");
  // Without an answer, a webhook may have settled the payout meanwhile.
  const settled = result
    ? await settlePayout(ctx, payout.id, result)
    : required(await findPayout(ctx.db, payout.id), "the payout");
  failPoint(ctx, "payout: settled, no response");
  return settled;
}

/** The amount is already debited, and the job submits the payout again: an error would make the caller request a second one. */
export const trySubmitPayout = (ctx: Context, payout: PayoutRow): Promise<PayoutRow> =>
  logAndContinue(ctx, payout, () => submitPayout(ctx, payout));

export const tryRefreshPayout = (ctx: Context, payout: PayoutRow): Promise<PayoutRow> =>
  logAndContinue(ctx, payout, () => refreshPayout(ctx, payout.id));

async function logAndContinue(
  ctx: Context,
  { id }: PayoutRow,
  work: () => Promise<unknown>,
): Promise<PayoutRow> {
  try {
    await work();
  } catch (error) {
    ctx.log.error(
      { payout: id, err: error },
      "a payout could not be submitted; the next job run tries again",
    );
  }
  return required(await findPayout(ctx.db, id), "the payout");
}

/** Throws `PaymentUnknown` without an answer, so that the provider repeats the webhook. */
export async function syncPayoutFromProvider(ctx: Context, payoutId: string): Promise<void> {
  const id = toUuid("payout", payoutId);
  if (id && (await findPayout(ctx.db, id))) await refreshPayout(ctx, id);
}

/** Submits a payout again if the provider does not know its id. */
async function refreshPayout(ctx: Context, id: string): Promise<void> {
  await markPayoutAsked(ctx.db, id, ctx.now());
  const found = await ctx.integrations.payments.findPayout(providerReference(id));
  if (found) {
    await settlePayout(ctx, id, found);
    return;
  }
  const payout = await findPayout(ctx.db, id);
  if (payout?.status === "pending") await submitPayout(ctx, payout);
  else
    ctx.log.error(
      { payout: id, status: payout?.status },
      "the payment provider does not know the id of a payout",
    );
}

export const reconcilePayouts = async (ctx: Context): Promise<void> =>
  forEachRow(
    await listPayoutsToCheck(ctx),
    (id) => refreshPayout(ctx, id),
    (id, err) =>
      ctx.log.warn({ payout: id, err }, "a payout could not be reconciled; the next job run tries again"),
  );

async function listPayoutsToCheck(ctx: Context): Promise<string[]> {
  const before = (ms: number) => new Date(ctx.now().getTime() - ms);
  const rows = [
    ...(await listAskedBefore(ctx.db, "pending", before(ASKED_RECENTLY_MS))),
    ...(await listWaitingForBalance(ctx.db, before(RECHECK_WAITING_MS))),
    ...(await listAskedBefore(ctx.db, "in_transit", before(RECHECK_IN_TRANSIT_MS))),
    ...(await listReturnable(ctx.db, {
      completedAfter: before(RETURNED_WITHIN_MS),
      askedBefore: before(RECHECK_COMPLETED_MS),
    })),
    ...(await listReturnable(ctx.db, {
      completedAfter: before(RETURNED_LATE_WITHIN_MS),
      askedBefore: before(RECHECK_LATE_MS),
    })),
  ];
  return [...new Set(rows.map(({ id }) => id))];
}
