import { findAccount } from "../../accounts/people/accounts.ts";
import type { Context } from "../../core/context.ts";
import { DAY_MS } from "../../core/dates.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId, toUuid } from "../../core/ids.ts";
import type { PayoutRequest, PayoutResult } from "../../integrations/payments/payments.ts";
import { forEachRow } from "../../platform/jobs/for-each-row.ts";
import { ANSWERED_WITHIN_MS, orLeftOpen } from "../charges/silence.ts";
import { SELLER_BANNED } from "./letters.ts";
import {
  findPayout,
  listAskedBefore,
  listReturnable,
  listWaiting,
  type PayoutRow,
  RETURNED_LATE_WITHIN_MS,
  RETURNED_WITHIN_MS,
  stampAsked,
} from "./queries.ts";
import { settle } from "./settling.ts";

/** By then it may have more of ours: sales settle there, and operators add to it. */
const WAITING_ASKED_AFTER_MS = 3_600_000;
/** A bank takes days; the provider's notice comes first, unless it is lost. */
const IN_TRANSIT_ASKED_AFTER_MS = 10 * 60_000;
const COMPLETED_ASKED_AFTER_MS = DAY_MS;
const LATE_ASKED_AFTER_MS = 7 * DAY_MS;

/** Their balance again, which waits with the rest of it until they are let in. */
const BANNED: PayoutResult = { state: "failed", providerPayoutId: null, failureCode: SELLER_BANNED };

const providersId = (id: string) => toId("payout", id);

const requestOf = (payout: PayoutRow): PayoutRequest => ({
  payoutId: providersId(payout.id),
  destination: payout.destination,
  amountMinor: payout.amountMinor,
  currency: payout.currency,
});

/**
 * Asks the provider to pay, under the payout's id, so that asking twice pays once. No answer leaves it open for the job. The provider
 * has none of that id yet: whoever was shut out since it was drawn is not paid.
 */
export async function send(ctx: Context, payout: PayoutRow): Promise<PayoutRow> {
  failPoint(ctx, "payout: drawn, not asked");
  if ((await findAccount(ctx.db, payout.sellerId))?.bannedAt) return settle(ctx, payout.id, BANNED);
  await stampAsked(ctx.db, payout.id, ctx.now());
  failPoint(ctx, "payout: about to be asked");
  const outcome = await orLeftOpen(ctx, { payout: payout.id }, () =>
    ctx.integrations.payments.payOut(requestOf(payout)),
  );
  failPoint(ctx, "payout: asked, not settled");
  // Without an answer, a notice may have come all the same.
  const settled = outcome ? await settle(ctx, payout.id, outcome) : (await findPayout(ctx.db, payout.id))!;
  failPoint(ctx, "payout: settled, not answered");
  return settled;
}

/**
 * What is drawn is drawn, whatever goes wrong with it: the others are asked for, whoever wished it hears how it stands and asks for no
 * second one, and the reconciling job sees to it.
 */
export const sendOrLeave = (ctx: Context, payout: PayoutRow): Promise<PayoutRow> =>
  orLeave(ctx, payout, () => send(ctx, payout));

/** Asks at once how a payout stands, without waiting for the reconciling job. */
export const refreshOrLeave = (ctx: Context, payout: PayoutRow): Promise<PayoutRow> =>
  orLeave(ctx, payout, () => refresh(ctx, payout.id));

async function orLeave(ctx: Context, { id }: PayoutRow, work: () => Promise<unknown>): Promise<PayoutRow> {
  try {
    await work();
  } catch (error) {
    ctx.log.error({ payout: id, err: error }, "a payout could not be sent; it is tried again");
  }
  return (await findPayout(ctx.db, id))!;
}

/** The provider says that something changed: asks what. Its silence is a `PaymentUnknown`, so that it says so again. */
export async function hearOfPayout(ctx: Context, payoutId: string): Promise<void> {
  const id = toUuid("payout", payoutId);
  if (id && (await findPayout(ctx.db, id))) await refresh(ctx, id);
}

/** Asks how a payout stands; one that the provider never heard of is asked for again. */
async function refresh(ctx: Context, id: string): Promise<void> {
  await stampAsked(ctx.db, id, ctx.now());
  const found = await ctx.integrations.payments.findPayout(providersId(id));
  if (found) {
    await settle(ctx, id, found);
    return;
  }
  const payout = await findPayout(ctx.db, id);
  if (payout?.status === "pending") await send(ctx, payout);
  else
    ctx.log.error({ payout: id, status: payout?.status }, "the payment provider knows nothing of a payout");
}

/** Makes ours and the provider's payouts say the same, whoever was killed in between. */
export const reconcilePayouts = async (ctx: Context): Promise<void> =>
  forEachRow(
    await listDue(ctx),
    (id) => refresh(ctx, id),
    (id, err) =>
      ctx.log.warn({ payout: id, err }, "a payout could not be reconciled; the next round tries again"),
  );

async function listDue(ctx: Context): Promise<string[]> {
  const before = (ms: number) => new Date(ctx.now().getTime() - ms);
  const rows = [
    ...(await listAskedBefore(ctx.db, "pending", before(ANSWERED_WITHIN_MS))),
    ...(await listWaiting(ctx.db, before(WAITING_ASKED_AFTER_MS))),
    ...(await listAskedBefore(ctx.db, "in_transit", before(IN_TRANSIT_ASKED_AFTER_MS))),
    ...(await listReturnable(ctx.db, {
      completedAfter: before(RETURNED_WITHIN_MS),
      askedBefore: before(COMPLETED_ASKED_AFTER_MS),
    })),
    ...(await listReturnable(ctx.db, {
      completedAfter: before(RETURNED_LATE_WITHIN_MS),
      askedBefore: before(LATE_ASKED_AFTER_MS),
    })),
  ];
  return [...new Set(rows.map(({ id }) => id))];
}
