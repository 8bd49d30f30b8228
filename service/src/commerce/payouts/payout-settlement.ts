import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { failPoint } from "../../core/fail-points.ts";
import { toId } from "../../core/ids.ts";
import { formatMoneyWithSymbol, toDecimal } from "../../core/money/amount.ts";
import { required } from "../../core/required.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { PayoutResult } from "../../integrations/payments/payments.ts";
import type { Tx } from "../../platform/db/database.ts";
import { queueEmail } from "../../platform/email/email-queue.ts";
import type { Email } from "../../platform/email/render-email.ts";
import { findAddressOfClosedAccount } from "./account-closing.ts";
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

/** Repeating a state changes nothing. */
export async function settlePayout(ctx: Context, id: string, result: PayoutResult): Promise<PayoutRow> {
  return ctx.db.transaction().execute(async (tx) => {
    const payout = await lockPayout(tx, id);
    if (!payout) throw new ApiError("PAYOUT_NOT_FOUND");
    if (isOpen(payout)) await applyResult(ctx, tx, payout, result);
    else if (payout.status === "completed") await applyReturn(ctx, tx, payout, result);
    else warnIfPaidLate(ctx, payout, result);
    failPoint(ctx, "payout: settling");
    return required(await findPayout(tx, id), "the payout");
  });
}

async function applyResult(ctx: Context, tx: Tx, payout: PayoutRow, result: PayoutResult): Promise<void> {
  if (result.state === "waits") return markWaiting(ctx, tx, payout, result.waitsFor);
  const known = { providerPayoutId: result.providerPayoutId, waitsFor: null };
  switch (result.state) {
    case "in_transit":
      await updatePayout(tx, payout.id, { ...known, status: "in_transit" });
      return;
    case "completed":
      await postPayoutCompleted(ctx, tx, payout);
      await publishCompleted(ctx, tx, payout);
      await recordReversal(ctx, tx, payout, result);
      return endPayout(ctx, tx, payout, { ...known, status: "completed", completedAt: ctx.now() });
    case "failed":
      await postPayoutFailed(ctx, tx, payout);
      return endPayout(ctx, tx, payout, { ...known, status: "failed", failureCode: result.failureCode });
    case "returned":
      // The completion was never published, so only the return is recorded.
      await postPayoutCompleted(ctx, tx, payout);
      await postPayoutReturned(ctx, tx, payout);
      return endPayout(ctx, tx, payout, { ...known, status: "returned" });
  }
}

/** The seller cannot fix this, so only the operator's log reports it; a job asks again. */
async function markWaiting({ log }: Context, tx: Tx, payout: PayoutRow, waitsFor: string): Promise<void> {
  await updatePayout(tx, payout.id, { status: payout.status, waitsFor });
  log.warn(
    { payout: payout.id, waitsFor },
    "our balance at the payment provider is too low for a payout; it waits",
  );
}

/** The operator must post a partial reversal by hand, because its reason is unknown here. */
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
    "the provider reversed a part of a payout, which the ledger cannot record: reverse the rest there, and it is paid out again",
  );
}

/** Some providers report `failed` for a returned payout. */
async function applyReturn(ctx: Context, tx: Tx, payout: PayoutRow, result: PayoutResult): Promise<void> {
  if (result.state === "completed") return recordReversal(ctx, tx, payout, result);
  if (result.state !== "returned" && result.state !== "failed") return;
  await postPayoutReturned(ctx, tx, payout);
  const failureCode = result.state === "failed" ? result.failureCode : null;
  await endPayout(ctx, tx, payout, { status: "returned", failureCode });
}

/** Either a delayed answer or a contradiction. Repair is manual: another payout may contain the amount. */
function warnIfPaidLate({ log }: Context, { id, status }: PayoutRow, { state }: PayoutResult): void {
  if (state !== "completed") return;
  log.warn(
    { payout: id, status },
    "the provider reports a payout as completed that failed or was returned here",
  );
}

async function endPayout(ctx: Context, tx: Tx, payout: PayoutRow, change: PayoutUpdate): Promise<void> {
  await updatePayout(tx, payout.id, change);
  const settled = required(await findPayout(tx, payout.id), "the payout");
  const message = renderPayoutEmail(settled);
  const lastAddress = await findAddressOfClosedAccount(tx, payout.sellerId);
  if (lastAddress) await queueEmail(ctx, tx, lastAddress, message);
  else await notifySeller(ctx, tx, settled, message);
}

const notificationKinds = {
  completed: "payout.completed",
  failed: "payout.failed",
  returned: "payout.returned",
} as const;

async function notifySeller(ctx: Context, tx: Tx, payout: PayoutRow, message: Email): Promise<void> {
  const { status, amountMinor, currency, periodStart: start, periodEnd: end, failureCode: reason } = payout;
  if (isOpen(payout)) return;
  const notification = {
    userId: payout.sellerId,
    kind: notificationKinds[status as keyof typeof notificationKinds],
    subjectId: toId("payout", payout.id),
    data: { amount: formatMoneyWithSymbol(amountMinor, currency), start, end, reason },
  };
  await notifyAccount(ctx, tx, notification, message);
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
