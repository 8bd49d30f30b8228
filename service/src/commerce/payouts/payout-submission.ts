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

/** By then it may have more of ours: sales settle there, and operators add to it. */
const RECHECK_WAITING_MS = 3_600_000;
/** A bank takes days; the provider's notice comes first, unless it is lost. */
const RECHECK_IN_TRANSIT_MS = 10 * 60_000;
const RECHECK_COMPLETED_MS = DAY_MS;
const RECHECK_LATE_MS = 7 * DAY_MS;

/** Their balance again, which waits with the rest of it until they are let in. */
const SELLER_BANNED_OUTCOME: PayoutResult = {
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
 * Asks the provider to pay, under the payout's id, so that asking twice pays once. No answer leaves it open for the job. The provider
 * has none of that id yet: whoever was shut out since it was drawn is not paid.
 */
export async function submitPayout(ctx: Context, payout: PayoutRow): Promise<PayoutRow> {
  failPoint(ctx, "payout: drawn, not asked");
  if ((await findAccount(ctx.db, payout.sellerId))?.bannedAt)
    return settlePayout(ctx, payout.id, SELLER_BANNED_OUTCOME);
  await markPayoutAsked(ctx.db, payout.id, ctx.now());
  failPoint(ctx, "payout: about to be asked");
  const outcome = await nullIfUnreachable(ctx, { payout: payout.id }, () =>
    ctx.integrations.payments.payOut(requestOf(payout)),
  );
  failPoint(ctx, "payout: asked, not settled");
  // Without an answer, a notice may have come all the same.
  const settled = outcome
    ? await settlePayout(ctx, payout.id, outcome)
    : required(await findPayout(ctx.db, payout.id), "the payout");
  failPoint(ctx, "payout: settled, not answered");
  return settled;
}

/**
 * What is drawn is drawn, whatever goes wrong with it: the others are asked for, whoever wished it hears how it stands and asks for no
 * second one, and the reconciling job sees to it.
 */
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
    ctx.log.error({ payout: id, err: error }, "a payout could not be sent; it is tried again");
  }
  return required(await findPayout(ctx.db, id), "the payout");
}

/** The provider says that something changed: asks what. Its silence is a `PaymentUnknown`, so that it says so again. */
export async function syncPayoutFromProvider(ctx: Context, payoutId: string): Promise<void> {
  const id = toUuid("payout", payoutId);
  if (id && (await findPayout(ctx.db, id))) await refreshPayout(ctx, id);
}

/** Asks how a payout stands; one that the provider never heard of is asked for again. */
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
    ctx.log.error({ payout: id, status: payout?.status }, "the payment provider knows nothing of a payout");
}

export const reconcilePayouts = async (ctx: Context): Promise<void> =>
  forEachRow(
    await listPayoutsToCheck(ctx),
    (id) => refreshPayout(ctx, id),
    (id, err) =>
      ctx.log.warn({ payout: id, err }, "a payout could not be reconciled; the next round tries again"),
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
