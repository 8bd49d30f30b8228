import { sendKeyExpiryEmails } from "./accounts/api-keys/expiry-emails.ts";
import { deleteOldNotifications } from "./accounts/notifications/notifications.ts";
import { deleteExpiredOAuthData } from "./accounts/oauth/cleanup.ts";
import { deleteOldRequests } from "./accounts/request-logs/request-log.ts";
import { deleteExpiredSignInData } from "./accounts/sign-in/cleanup.ts";
import { recordHealth } from "./backoffice/operation/health.ts";
import { sweepBlobs } from "./catalog/files/blob-sweep.ts";
import {
  type CheckForCopiesData,
  COPY_CHECKS_TOGETHER,
  checkForCopies,
  checkForCopiesJob,
  requestMissingCopyChecks,
} from "./catalog/products/copy-reports.ts";
import { scanOutdatedVersions } from "./catalog/products/rescans.ts";
import {
  type NotifyBuyersData,
  notifyBuyers,
  notifyBuyersJob,
} from "./catalog/products/version-notifications.ts";
import { compactFacetCounts, updateWordFrequencies } from "./catalog/search/search-maintenance.ts";
import { eraseViewers } from "./catalog/search/views.ts";
import { rollUpSales } from "./commerce/analytics/sales-sums.ts";
import { reconcileCharges, syncCharge } from "./commerce/charges/charges.ts";
import { type DisputeHandler, reconcileDisputes, syncDispute } from "./commerce/charges/disputes.ts";
import {
  type DetachedMethod,
  detachAtProvider,
  detachMethodJob,
} from "./commerce/charges/payment-methods.ts";
import type { PaymentWebhookHandlers } from "./commerce/charges/payment-webhooks.ts";
import { reconcileNightly } from "./commerce/charges/provider-reconciliation.ts";
import { orderTarget } from "./commerce/checkout/order-payment.ts";
import { applyOrderDispute } from "./commerce/disputes/disputes.ts";
import { verifyLedgerNightly } from "./commerce/ledger/nightly-verification.ts";
import { deleteLastAddresses } from "./commerce/payouts/account-closing.ts";
import { reconcilePayouts, syncPayoutFromProvider } from "./commerce/payouts/payout-submission.ts";
import { payOutBySchedule } from "./commerce/payouts/schedule.ts";
import { applyPlanDispute } from "./commerce/plans/disputes.ts";
import { planPaymentTarget } from "./commerce/plans/plan-payment.ts";
import { renewSubscriptions } from "./commerce/plans/renewal.ts";
import { applyDueDowngrades } from "./commerce/plans/subscription.ts";
import { reconcileProviderRefunds, syncProviderRefunds } from "./commerce/refunds/provider-refunds.ts";
import {
  type RefundBuyersData,
  refundBuyersJob,
  runRefundBuyersJob,
} from "./commerce/refunds/refund-buyers.ts";
import {
  approveOverdueRefunds,
  reconcileRefunds,
  syncRefundFromProvider,
} from "./commerce/refunds/refund-submission.ts";
import type { Context } from "./core/context.ts";
import { deleteOldEvents } from "./events/feed/events.ts";
import { deleteWebhookLog, deleteWebhookLogJob } from "./events/webhooks/closed-account.ts";
import { checkFailingEndpoints } from "./events/webhooks/endpoint-health.ts";
import { purgeDeletedEndpoints } from "./events/webhooks/endpoints.ts";
import { recoverJob, runRecovery } from "./events/webhooks/recoveries.ts";
import {
  advanceEvaluation,
  advanceEvaluationJob,
  advanceEvaluations,
} from "./execution/evaluations/advance.ts";
import {
  type NotifyOfRegressionData,
  notifyOfRegression,
  notifyOfRegressionJob,
} from "./execution/evaluations/buyer-notifications.ts";
import { startReEvaluations } from "./execution/evaluations/re-evaluations.ts";
import { eraseOldTexts, failAbandonedRuns } from "./execution/executions/executions.ts";
import { foldRuns } from "./execution/executions/run-sums.ts";
import { deleteOldCalls } from "./execution/provider-keys/provider-calls.ts";
import { deleteOldTries } from "./execution/try-outs/delete-old-tries.ts";
import { eraseOldRunTexts } from "./execution/workflow-runs/text-retention.ts";
import { deleteOldEmails, sendEmailJob, sendQueuedEmail } from "./platform/email/email-queue.ts";
import { deleteExpiredIdempotencyKeys } from "./platform/http/idempotency.ts";
import type { QueuedJob, ScheduledJob } from "./platform/jobs/job-worker.ts";

/** What workers do by the clock. */
export const listScheduledJobs = (ctx: Context): ScheduledJob[] => [
  { name: "reconcile-orders", cron: "* * * * *", run: () => reconcileCharges(ctx, orderTarget) },
  { name: "approve-overdue-refunds", cron: "* * * * *", run: () => approveOverdueRefunds(ctx) },
  {
    name: "reconcile-refunds",
    cron: "* * * * *",
    async run() {
      await reconcileRefunds(ctx);
      await reconcileProviderRefunds(ctx);
    },
  },
  {
    name: "reconcile-disputes",
    cron: "*/10 * * * *",
    atStart: true,
    run: () => reconcileDisputes(ctx, disputeRooms),
  },
  {
    name: "reconcile-subscription-payments",
    cron: "* * * * *",
    run: () => reconcileCharges(ctx, planPaymentTarget),
  },
  { name: "reconcile-payouts", cron: "* * * * *", run: () => reconcilePayouts(ctx) },
  {
    name: "delete-last-addresses",
    cron: "31 * * * *",
    run: async () => void (await deleteLastAddresses(ctx)),
  },
  ...listPayoutJobs(ctx),
  { name: "apply-downgrades", cron: "* * * * *", run: () => applyDueDowngrades(ctx) },
  { name: "renew-subscriptions", cron: "* * * * *", run: () => renewSubscriptions(ctx) },
  { name: "compact-facet-counts", cron: "* * * * *", run: () => compactFacetCounts(ctx) },
  { name: "roll-up-sales", cron: "* * * * *", run: () => rollUpSales(ctx) },
  { name: "verify-ledger", cron: "13 2 * * *", run: () => verifyLedgerNightly(ctx) },
  { name: "reconcile-payments", cron: "37 2 * * *", run: () => reconcileNightly(ctx) },
  { name: "update-word-frequencies", cron: "47 4 * * *", run: () => updateWordFrequencies(ctx) },
  { name: "request-copy-checks", cron: "7 4 * * *", run: () => requestMissingCopyChecks(ctx) },
  { name: "scan-outdated-versions", cron: "27 * * * *", run: () => scanOutdatedVersions(ctx) },
  { name: "advance-evaluations", cron: "* * * * *", run: () => advanceEvaluations(ctx) },
  { name: "start-re-evaluations", cron: "21 * * * *", run: () => startReEvaluations(ctx) },
  { name: "fail-abandoned-runs", cron: "* * * * *", run: () => failAbandonedRuns(ctx) },
  { name: "fold-runs", cron: "43 * * * *", run: () => foldRuns(ctx) },
  { name: "erase-run-texts", cron: "*/5 * * * *", run: async () => void (await eraseOldTexts(ctx)) },
  { name: "delete-old-tries", cron: "13 * * * *", run: () => deleteOldTries(ctx) },
  { name: "delete-old-provider-calls", cron: "57 3 * * *", run: () => deleteOldCalls(ctx) },
  { name: "erase-workflow-run-texts", cron: "19 * * * *", run: () => eraseOldRunTexts(ctx) },
  { name: "erase-viewers", cron: "11 * * * *", run: () => eraseViewers(ctx) },
  {
    name: "delete-expired-idempotency-keys",
    cron: "17 * * * *",
    run: () => deleteExpiredIdempotencyKeys(ctx),
  },
  { name: "delete-old-emails", cron: "23 * * * *", run: () => deleteOldEmails(ctx) },
  { name: "send-key-expiry-emails", cron: "37 * * * *", run: () => sendKeyExpiryEmails(ctx) },
  { name: "delete-expired-sign-in-data", cron: "29 * * * *", run: () => deleteExpiredSignInData(ctx) },
  { name: "delete-expired-oauth-data", cron: "41 * * * *", run: () => deleteExpiredOAuthData(ctx) },
  { name: "sweep-blobs", cron: "53 * * * *", run: () => sweepBlobs(ctx) },
  { name: "check-failing-webhook-endpoints", cron: "31 * * * *", run: () => checkFailingEndpoints(ctx) },
  {
    name: "purge-deleted-webhooks",
    cron: "51 3 * * *",
    run: async () => void (await purgeDeletedEndpoints(ctx)),
  },
  { name: "delete-old-request-logs", cron: "7 * * * *", run: () => deleteOldRequests(ctx) },
  { name: "delete-old-notifications", cron: "3 * * * *", run: () => deleteOldNotifications(ctx) },
  { name: "delete-old-events", cron: "43 3 * * *", run: () => deleteOldEvents(ctx) },
  { name: "record-health", cron: "*/10 * * * *", run: () => recordHealth(ctx) },
];

/** Looks each minute whether a slot of the schedule has come due. */
function listPayoutJobs(ctx: Context): ScheduledJob[] {
  const { payoutSchedule } = ctx.config;
  if (!payoutSchedule) return [];
  return [{ name: "pay-out", cron: "* * * * *", run: () => payOutBySchedule(ctx, payoutSchedule) }];
}

/** What workers do when they are asked to. */
export const listQueuedJobs = (ctx: Context): QueuedJob[] => [
  {
    ...sendEmailJob,
    run: (data, signal) => sendQueuedEmail(ctx, (data as { mailId: string }).mailId, signal),
  },
  { ...notifyBuyersJob, run: (data, signal) => notifyBuyers(ctx, data as NotifyBuyersData, signal) },
  {
    ...checkForCopiesJob,
    run: (data) => checkForCopies(ctx, [data as CheckForCopiesData]),
    batch: { size: COPY_CHECKS_TOGETHER, run: (data) => checkForCopies(ctx, data as CheckForCopiesData[]) },
  },
  { ...refundBuyersJob, run: (data, signal) => runRefundBuyersJob(ctx, data as RefundBuyersData, signal) },
  { ...detachMethodJob, run: (data) => detachAtProvider(ctx, data as DetachedMethod) },
  {
    ...advanceEvaluationJob,
    run: (data) => advanceEvaluation(ctx, (data as { evaluationId: string }).evaluationId),
  },
  {
    ...notifyOfRegressionJob,
    run: (data, signal) => notifyOfRegression(ctx, data as NotifyOfRegressionData, signal),
  },
  {
    ...recoverJob,
    run: (data, signal) => runRecovery(ctx, (data as { recoveryId: string }).recoveryId, signal),
  },
  {
    ...deleteWebhookLogJob,
    run: (data, signal) => deleteWebhookLog(ctx, (data as { userId: string }).userId, signal),
  },
];

/** Whose rows a dispute may be about. */
export const disputeRooms: DisputeHandler[] = [applyOrderDispute, applyPlanDispute];

/** The id belongs to one of both kinds; the other kind ignores it. */
async function syncOrderOrPlanPayment(ctx: Context, publicId: string): Promise<void> {
  await syncCharge(ctx, orderTarget, publicId);
  await syncCharge(ctx, planPaymentTarget, publicId);
}

/** Handlers of the payment provider's webhooks, by topic. */
export const noticeHandlers: PaymentWebhookHandlers = {
  payment: (ctx, { orderId }) => syncOrderOrPlanPayment(ctx, orderId),
  "refunds of a payment": async (ctx, { orderId }) => {
    await syncOrderOrPlanPayment(ctx, orderId);
    await syncProviderRefunds(ctx, orderId);
  },
  refund: (ctx, { refundId }) => syncRefundFromProvider(ctx, refundId),
  payout: (ctx, { payoutId }) => syncPayoutFromProvider(ctx, payoutId),
  dispute: (ctx, { disputeId }) => syncDispute(ctx, disputeRooms, disputeId),
};
