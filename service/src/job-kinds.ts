import { checkForCopiesJob } from "./catalog/products/copy-reports.ts";
import { notifyBuyersJob } from "./catalog/products/version-notifications.ts";
import { detachMethodJob } from "./commerce/charges/payment-methods.ts";
import { refundBuyersJob } from "./commerce/refunds/refund-buyers.ts";
import { deleteWebhookLogJob } from "./events/webhooks/closed-account.ts";
import { recoverJob } from "./events/webhooks/recoveries.ts";
import { advanceEvaluationJob } from "./execution/evaluations/advance.ts";
import { notifyOfRegressionJob } from "./execution/evaluations/buyer-notifications.ts";
import { sendEmailJob } from "./platform/email/email-queue.ts";

/** What can be asked for by `ctx.jobs.send`. */
export const jobKinds = [
  sendEmailJob,
  notifyBuyersJob,
  checkForCopiesJob,
  refundBuyersJob,
  detachMethodJob,
  recoverJob,
  advanceEvaluationJob,
  notifyOfRegressionJob,
  deleteWebhookLogJob,
];
