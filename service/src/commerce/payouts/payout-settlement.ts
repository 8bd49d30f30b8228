import { toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { PayoutResult } from "../../integrations/payments/payments.ts";
import type { Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import { findEmailAddress } from "./account-closing.ts";
import { renderPayoutEmail } from "./payout-email.ts";
import { postPayoutCompleted, postPayoutFailed, postPayoutReturned } from "./payout-postings.ts";
import {
  findPayout,
  lockPayout,
  OPEN_PAYOUT_STATUSES,
  type PayoutRow,
  type PayoutUpdate,
  updatePayout,
} from "./queries.ts";

const isOpen = ({ status }: PayoutRow) => OPEN_PAYOUT_STATUSES.includes(status);

/** Applies the provider's state to a payout and the ledger. A repeated state changes nothing. */
export async function settlePayout(ctx: Context, id: string, outcome: PayoutResult): Promise<PayoutRow> {
  return ctx.db.transaction().execute(async (tx) => {
    const payout = await lockPayout(tx, id);
    if (!payout) throw new ApiError("PAYOUT_NOT_FOUND");
    if (isOpen(payout)) await applyOutcome(ctx, tx, payout, outcome);
    else if (payout.status === "completed") await applyReturn(ctx, tx, payout, outcome);
    else warnIfPaidLate(ctx, payout, outcome);
    failPoint(ctx, "payout: settling");
    return required(await findPayout(tx, id), "the payout");
  });
}

async function applyOutcome(ctx: Context, tx: Tx, payout: PayoutRow, outcome: PayoutResult): Promise<void> {
  if (outcome.state === "waits") return markWaiting(ctx, tx, payout, outcome.waitsFor);
  const known = { providerPayoutId: outcome.providerPayoutId, waitsFor: null };
  switch (outcome.state) {
    case "in_transit":
      await updatePayout(tx, payout.id, { ...known, status: "in_transit" });
      return;
    case "completed":
      await postPayoutCompleted(ctx, tx, payout);
      await publishCompleted(ctx, tx, payout);
      await recordReversal(ctx, tx, payout, outcome);
      return endPayout(ctx, tx, payout, { ...known, status: "completed", completedAt: ctx.now() });
    case "failed":
      await postPayoutFailed(ctx, tx, payout);
      return endPayout(ctx, tx, payout, { ...known, status: "failed", failureCode: outcome.failureCode });
    case "returned":
      // The completion was never announced, so only the return is recorded.
      await postPayoutCompleted(ctx, tx, payout);
      await postPayoutReturned(ctx, tx, payout);
      return endPayout(ctx, tx, payout, { ...known, status: "returned" });
  }
}

/** The provider cannot pay yet. The job asks again; the seller cannot change it. */
async function markWaiting({ log }: Context, tx: Tx, payout: PayoutRow, waitsFor: string): Promise<void> {
  await updatePayout(tx, payout.id, { status: payout.status, waitsFor });
  log.warn(
    { payout: payout.id, waitsFor },
    "the payment provider has too little of ours for a payout; it waits",
  );
}

/** The operator must post a partial reversal by hand, because the reason is unknown here. */
async function recordReversal(
  { log }: Context,
  tx: Tx,
  payout: PayoutRow,
  { reversedMinor = 0n }: { reversedMinor?: bigint },
): Promise<void> {
  if (reversedMinor <= payout.reversedMinor) return;
  await updatePayout(tx, payout.id, { status: "completed", reversedMinor });
  log.error(
    { payout: payout.id, reversedMinor },
    "the provider took back a part of a payout, which the ledger cannot record: take back all of it there, and the payout is repeated",
  );
}

/** Some providers report `failed` for a payout that was returned. */
async function applyReturn(ctx: Context, tx: Tx, payout: PayoutRow, outcome: PayoutResult): Promise<void> {
  if (outcome.state === "completed") return recordReversal(ctx, tx, payout, outcome);
  if (outcome.state !== "returned" && outcome.state !== "failed") return;
  await postPayoutReturned(ctx, tx, payout);
  const failureCode = outcome.state === "failed" ? outcome.failureCode : null;
  await endPayout(ctx, tx, payout, { status: "returned", failureCode });
}

/** A delayed answer, or a contradiction by the provider. No job can repair it, because another payout may contain the amount. */
function warnIfPaidLate({ log }: Context, { id, status }: PayoutRow, { state }: PayoutResult): void {
  if (state !== "completed") return;
  log.warn({ payout: id, status }, "the provider calls a payout completed whose amount was given back");
}

async function endPayout(ctx: Context, tx: Tx, payout: PayoutRow, change: PayoutUpdate): Promise<void> {
  await updatePayout(tx, payout.id, change);
  const address = await findEmailAddress(tx, payout.sellerId);
  if (address)
    await queueEmail(
      ctx,
      tx,
      address,
      renderPayoutEmail(required(await findPayout(tx, payout.id), "the payout")),
    );
}

const publishCompleted = (ctx: Context, tx: Tx, payout: PayoutRow) =>
  publishEvent(ctx, tx, [payout.sellerId], "payout.completed", {
    payout: {
      id: toId("payout", payout.id),
      sellerId: toUserId(payout.sellerId),
      amount: toDecimal(payout.amountMinor, payout.currency),
      currency: payout.currency,
      period: { start: payout.periodStart, end: payout.periodEnd },
    },
  });
