/** Kinds by what they concern, in the order of the page. A later version of the service may add some: they stand at the end. */
export const GROUPS: { title: string; kinds: Record<string, string> }[] = [
  {
    title: "What you buy",
    kinds: {
      "purchase.refunded": "A refund was paid to you",
      "purchase.refund_rejected": "A request for a refund was rejected",
      "purchase.refund_failed": "A refund failed",
      "purchase.refund_returned": "Your bank returned a refund",
      "purchase.disputed": "Your bank disputes a payment",
      "purchase.dispute_closed": "A dispute about your payment was decided",
      "product.version_released": "A product that you own has a new version",
      "product.regressed": "A product that you own passes fewer tests",
      "review.replied": "A seller replied to your review",
    },
  },
  {
    title: "Runs",
    kinds: {
      "execution.waiting": "A run waits for your approval",
      "execution.completed": "A long run completed",
      "execution.failed": "A run failed",
    },
  },
  {
    title: "What you sell",
    kinds: {
      "sale.completed": "A buyer bought your product",
      "sale.refund_requested": "A buyer requests a refund",
      "sale.refund_canceled": "A buyer canceled the request",
      "sale.refunded": "A buyer was refunded",
      "sale.refund_failed": "A refund to a buyer failed",
      "sale.disputed": "A bank disputes a payment to you",
      "sale.dispute_won": "You won a dispute",
      "sale.dispute_lost": "You lost a dispute",
      "review.created": "Your product has a new review",
      "product.approved": "Your product was approved",
      "product.rejected": "Your product was rejected",
      "product.suspended": "Your product was suspended",
      "product.reinstated": "The suspension of your product ended",
      "evaluation.completed": "An evaluation of your product completed",
      "evaluation.failed": "An evaluation of your product failed",
      "evaluation.paused": "Your product cannot be evaluated again",
      "evaluation.regressed": "Your product passes fewer tests",
    },
  },
  {
    title: "Payouts",
    kinds: {
      "payout.completed": "A payout was sent",
      "payout.failed": "A payout failed",
      "payout.returned": "Your bank returned a payout",
      "payout_account.changed": "Your payouts go to another account",
    },
  },
  {
    title: "Plan",
    kinds: {
      "plan.changed": "Your plan changed",
      "plan.payment_failed": "A payment for your plan failed",
      "plan.confirmation_required": "Your bank asks you to confirm a payment",
      "plan.disputed": "Your bank returned a payment for your plan",
    },
  },
  {
    title: "Webhooks",
    kinds: {
      "webhook.failing": "An endpoint does not accept deliveries",
      "webhook.disabled": "An endpoint was disabled",
      "webhook.deliveries_failed": "Deliveries failed for good",
      "webhook.changed": "An endpoint or a secret changed",
    },
  },
  {
    title: "Keys and apps",
    kinds: {
      "api_key.created": "An API key was created",
      "api_key.rotated": "An API key was rotated",
      "api_key.revoked": "The operator revoked an API key",
      "api_key.expiring": "An API key expires soon",
      "oauth_client.changed": "An OAuth app of yours changed",
      "oauth_grant.created": "An app has access to your account",
    },
  },
  {
    title: "Security",
    kinds: {
      "session.created": "A new sign-in to your account",
      "account.viewed": "An administrator viewed your account",
      "password.changed": "Your password changed",
      "two_factor.changed": "Two-factor authentication changed",
      "identity.linked": "A way to sign in was added",
      "identity.unlinked": "A way to sign in was removed",
    },
  },
];
