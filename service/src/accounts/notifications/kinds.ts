import { type NotificationKind, type notificationSubjects, toVisibleLine } from "@stoa/contract";
import { slugOf } from "../../core/slug.ts";

type Subject = (typeof notificationSubjects)[number];

interface Facts<D> {
  data: D;
  /** The present name of the account that acted. */
  actor: string;
}

interface KindDefinition<D> {
  subject: Subject;
  title: (facts: Facts<D>) => string;
  text?: (facts: Facts<D>) => string | null;
  /** The path in the web client. */
  url: (facts: { id: string; data: D }) => string;
}

export type Data = Record<string, string | null>;

const kind = <D extends Data>(definition: KindDefinition<D>) => definition;

type Money = { product: string; amount: string };
type RefundData = Money & { orderId: string };

const orderUrl = ({ data }: { data: { orderId: string } }) => `/orders/${data.orderId}`;
const saleUrl = ({ id }: { id: string }) => `/studio/sales/${id}`;
const saleRefundUrl = ({ id }: { id: string }) => `/studio/refunds/${id}`;
const payoutsUrl = () => "/studio/payouts";
const planUrl = () => "/account/plan";
const securityUrl = () => "/account/security";
const keysUrl = () => "/settings/api";
const webhookUrl = ({ id }: { id: string }) => `/settings/webhooks/${id}`;
const runUrl = ({ id }: { id: string }) => `/runs/${id}`;
const studioProductUrl = ({ id }: { id: string }) => `/studio/products/${id}`;

/** The words of each kind. `data` has what a title needs and the present row may no longer have. */
export const kinds = {
  "sale.completed": kind<Money>({
    subject: "order",
    title: ({ actor, data }) => `${actor} bought ${data.product} for ${data.amount}`,
    url: saleUrl,
  }),
  "sale.refund_requested": kind<Money & { decideBy: string }>({
    subject: "refund",
    title: ({ actor, data }) => `${actor} requests a refund of ${data.amount} for ${data.product}`,
    text: ({ data }) => `Approve or reject it by ${data.decideBy}; then it is approved automatically.`,
    url: saleRefundUrl,
  }),
  "sale.refund_canceled": kind<Money>({
    subject: "refund",
    title: ({ actor, data }) => `${actor} canceled the request for a refund of ${data.product}`,
    url: saleRefundUrl,
  }),
  "sale.refunded": kind<Money>({
    subject: "refund",
    title: ({ actor, data }) => `${actor} was refunded ${data.amount} for ${data.product}`,
    text: () => "Your share was deducted from your balance.",
    url: saleRefundUrl,
  }),
  "sale.refund_failed": kind<Money>({
    subject: "refund",
    title: ({ data }) => `A refund of ${data.amount} for ${data.product} failed`,
    text: () => "Your balance is unchanged.",
    url: saleRefundUrl,
  }),
  "sale.disputed": kind<Money>({
    subject: "order",
    title: ({ data }) => `A bank disputes a payment of ${data.amount} for ${data.product}`,
    text: () => "Your share is held until the bank decides.",
    url: saleUrl,
  }),
  "sale.dispute_won": kind<Money>({
    subject: "order",
    title: ({ data }) => `You won the dispute about ${data.amount} for ${data.product}`,
    text: () => "The held amount is back in your balance.",
    url: saleUrl,
  }),
  "sale.dispute_lost": kind<Money>({
    subject: "order",
    title: ({ data }) => `You lost the dispute about ${data.amount} for ${data.product}`,
    text: () => "Your share and the payment provider's fee are deducted from your balance.",
    url: saleUrl,
  }),
  "review.created": kind<{ product: string; rating: string }>({
    subject: "review",
    title: ({ actor, data }) =>
      `${actor} gave ${data.product} ${data.rating} ${data.rating === "1" ? "star" : "stars"}`,
    url: () => "/studio/reviews",
  }),
  "product.approved": kind<{ product: string }>({
    subject: "product",
    title: ({ data }) => `${data.product} is approved and on sale`,
    url: studioProductUrl,
  }),
  "product.rejected": kind<{ product: string; reason: string | null }>({
    subject: "product",
    title: ({ data }) => `${data.product} was rejected`,
    text: ({ data }) => data.reason,
    url: studioProductUrl,
  }),
  "product.suspended": kind<{ product: string; reason: string | null }>({
    subject: "product",
    title: ({ data }) => `${data.product} is suspended and off sale`,
    text: ({ data }) => data.reason,
    url: studioProductUrl,
  }),
  "product.reinstated": kind<{ product: string }>({
    subject: "product",
    title: ({ data }) => `The suspension of ${data.product} ended`,
    text: () => "Publish it again to sell it.",
    url: studioProductUrl,
  }),
  "evaluation.completed": kind<{ product: string; version: string; result: string }>({
    subject: "product",
    title: ({ data }) => `The evaluation of ${data.product} ${data.version} completed`,
    text: ({ data }) => `${data.result}.`,
    url: studioProductUrl,
  }),
  // The error's message may quote the texts of a run.
  "evaluation.failed": kind<{ product: string; version: string; code: string }>({
    subject: "product",
    title: ({ data }) => `The evaluation of ${data.product} ${data.version} failed`,
    text: ({ data }) => `Error ${data.code}. Its results so far stay.`,
    url: studioProductUrl,
  }),
  "evaluation.paused": kind<{ product: string; code: string; reason: string }>({
    subject: "product",
    title: ({ data }) => `${data.product} cannot be evaluated again`,
    text: ({ data }) => `Error ${data.code}: ${data.reason}.`,
    url: studioProductUrl,
  }),
  "evaluation.regressed": kind<{ product: string; result: string }>({
    subject: "product",
    title: ({ data }) => `${data.product} passes fewer of its tests than before`,
    text: ({ data }) => `${data.result}.`,
    url: studioProductUrl,
  }),
  "payout.completed": kind<{ amount: string; start: string; end: string }>({
    subject: "payout",
    title: ({ data }) => `${data.amount} was paid out to you`,
    text: ({ data }) => `For the period from ${data.start} to ${data.end}.`,
    url: payoutsUrl,
  }),
  "payout.failed": kind<{ amount: string; reason: string | null }>({
    subject: "payout",
    title: ({ data }) => `A payout of ${data.amount} failed`,
    text: ({ data }) => `The amount is back in your balance.${reasonOf(data)}`,
    url: payoutsUrl,
  }),
  "payout.returned": kind<{ amount: string; reason: string | null }>({
    subject: "payout",
    title: ({ data }) => `Your bank returned a payout of ${data.amount}`,
    text: ({ data }) => `The amount is back in your balance.${reasonOf(data)}`,
    url: payoutsUrl,
  }),
  "purchase.refunded": kind<RefundData>({
    subject: "refund",
    title: ({ data }) => `${data.amount} for ${data.product} was refunded to you`,
    text: () => "Your bank may take a few days to show it.",
    url: orderUrl,
  }),
  "purchase.refund_rejected": kind<RefundData & { reason: string | null }>({
    subject: "refund",
    title: ({ data }) => `Your request for a refund of ${data.amount} for ${data.product} was rejected`,
    text: ({ data }) => data.reason,
    url: orderUrl,
  }),
  "purchase.refund_failed": kind<RefundData>({
    subject: "refund",
    title: ({ data }) => `The refund of ${data.amount} for ${data.product} failed`,
    text: () => "Request it again, or contact the operator of this marketplace.",
    url: orderUrl,
  }),
  "purchase.refund_returned": kind<RefundData>({
    subject: "refund",
    title: ({ data }) => `Your bank returned a refund of ${data.amount} for ${data.product}`,
    text: () => "Contact the operator of this marketplace to choose another way to receive it.",
    url: orderUrl,
  }),
  "purchase.disputed": kind<Money>({
    subject: "order",
    title: ({ data }) => `Your bank disputes your payment of ${data.amount} for ${data.product}`,
    text: () => "You keep the product until the bank decides.",
    url: ({ id }) => `/orders/${id}`,
  }),
  "purchase.dispute_closed": kind<Money & { result: "won" | "lost" }>({
    subject: "order",
    title: ({ data }) =>
      data.result === "won"
        ? `Your payment of ${data.amount} for ${data.product} stands`
        : `Your bank returned ${data.amount} for ${data.product} to you`,
    url: ({ id }) => `/orders/${id}`,
  }),
  "review.replied": kind<{ product: string; productId: string }>({
    subject: "review",
    title: ({ actor, data }) => `${actor} replied to your review of ${data.product}`,
    url: ({ data }) => productUrl(data.productId, data.product),
  }),
  "product.version_released": kind<{ product: string; version: string }>({
    subject: "product",
    title: ({ data }) => `Version ${data.version} of ${data.product} is out`,
    url: ({ id, data }) => productUrl(id, data.product),
  }),
  "product.regressed": kind<{ product: string; result: string }>({
    subject: "product",
    title: ({ data }) => `${data.product} passes fewer of its seller's tests than before`,
    text: ({ data }) => `${data.result}.`,
    url: ({ id, data }) => productUrl(id, data.product),
  }),
  "plan.changed": kind<{ from: string; to: string }>({
    subject: "account",
    title: ({ data }) => `Your plan changed from ${data.from} to ${data.to}`,
    url: planUrl,
  }),
  "plan.payment_failed": kind<{ plan: string; amount: string; nextTry: string | null }>({
    subject: "account",
    title: ({ data }) =>
      data.nextTry
        ? `The payment of ${data.amount} for your plan ${data.plan} failed`
        : `Your plan ${data.plan} ended: three attempts to charge ${data.amount} failed`,
    text: ({ data }) =>
      data.nextTry
        ? `We try again on ${data.nextTry}. To pay earlier, choose the plan again with another payment method.`
        : null,
    url: planUrl,
  }),
  "plan.confirmation_required": kind<{ plan: string; amount: string }>({
    subject: "account",
    title: ({ data }) => `Confirm the payment of ${data.amount} for your plan ${data.plan}`,
    text: () => "Your bank requires it within 24 hours. The email has the link.",
    url: planUrl,
  }),
  "plan.disputed": kind<{ plan: string; amount: string; until: string | null }>({
    subject: "account",
    title: ({ data }) => `Your bank returned your payment of ${data.amount} for your plan ${data.plan}`,
    text: ({ data }) =>
      data.until ? `The plan ends on ${data.until}.` : "Your account now has the free plan.",
    url: planUrl,
  }),
  "execution.waiting": kind<{ product: string; steps: string }>({
    subject: "execution",
    title: ({ data }) => `A run of ${data.product} waits for your approval`,
    text: ({ data }) => `Step: ${data.steps}.`,
    url: runUrl,
  }),
  "execution.completed": kind<{ product: string }>({
    subject: "execution",
    title: ({ data }) => `A run of ${data.product} completed`,
    url: runUrl,
  }),
  // The error's message may quote the texts of the run, which are erased earlier.
  "execution.failed": kind<{ product: string; code: string }>({
    subject: "execution",
    title: ({ data }) => `A run of ${data.product} failed`,
    text: ({ data }) => `Error ${data.code}. You can retry it.`,
    url: runUrl,
  }),
  "webhook.failing": kind<{ url: string; since: string }>({
    subject: "webhook",
    title: ({ data }) => `${data.url} does not accept deliveries`,
    text: ({ data }) => `It has accepted none since ${data.since}. After five days we disable the endpoint.`,
    url: webhookUrl,
  }),
  "webhook.disabled": kind<{ url: string; reason: "gone" | "failing" }>({
    subject: "webhook",
    title: ({ data }) => `The webhook endpoint ${data.url} is disabled`,
    text: ({ data }) =>
      data.reason === "gone" ? "It responded 410 Gone." : "It accepted no delivery for five days.",
    url: webhookUrl,
  }),
  "webhook.deliveries_failed": kind<{ url: string; count: string }>({
    subject: "webhook",
    title: ({ data }) =>
      `${data.count === "1" ? "1 delivery" : `${data.count} deliveries`} to ${data.url} failed`,
    text: () => "Eight attempts failed. You can resend them.",
    url: webhookUrl,
  }),
  "webhook.changed": kind<{ change: "created" | "moved" | "secret" | "callback_secret"; url: string | null }>(
    {
      subject: "webhook",
      title: ({ data }) =>
        ({
          created: `The webhook endpoint ${data.url} was created`,
          moved: `A webhook endpoint now sends to ${data.url}`,
          secret: `The webhook endpoint ${data.url} has a new secret`,
          callback_secret: "Your account has a new callback secret",
        })[data.change],
      // The callback secret stands with the keys.
      url: ({ id }) => (id.startsWith("whk_") ? webhookUrl({ id }) : keysUrl()),
    },
  ),
  "api_key.created": kind<{ name: string }>({
    subject: "api_key",
    title: ({ data }) => `The API key ${data.name} was created`,
    url: keysUrl,
  }),
  "api_key.rotated": kind<{ name: string; expiresAt: string }>({
    subject: "api_key",
    title: ({ data }) => `The API key ${data.name} was replaced`,
    text: ({ data }) => `The old value works until ${data.expiresAt}.`,
    url: keysUrl,
  }),
  "api_key.revoked": kind<{ name: string }>({
    subject: "api_key",
    title: ({ data }) => `The operator revoked the API key ${data.name}`,
    text: () => "It was found in public.",
    url: keysUrl,
  }),
  "api_key.expiring": kind<{ name: string; expiresAt: string }>({
    subject: "api_key",
    title: ({ data }) => `The API key ${data.name} expires on ${data.expiresAt}`,
    url: keysUrl,
  }),
  "oauth_client.changed": kind<{ change: "created" | "secret"; name: string }>({
    subject: "oauth_client",
    title: ({ data }) =>
      data.change === "created"
        ? `The OAuth application ${data.name} was created`
        : `The OAuth application ${data.name} has a new secret`,
    url: () => "/settings/oauth-apps",
  }),
  "oauth_grant.created": kind<{ name: string; scopes: string }>({
    subject: "oauth_grant",
    title: ({ data }) => `The application ${data.name} has access to your account`,
    text: ({ data }) => `Scopes: ${data.scopes}.`,
    url: () => "/account/connected-apps",
  }),
  "password.changed": kind<Record<never, never>>({
    subject: "account",
    title: () => "Your password was changed",
    text: () => "All other sessions ended.",
    url: securityUrl,
  }),
  "two_factor.changed": kind<{
    change: "enabled" | "disabled" | "codes_renewed" | "code_used";
    left: string | null;
  }>({
    subject: "account",
    title: ({ data }) =>
      ({
        enabled: "Two-factor authentication is on",
        disabled: "Two-factor authentication is off",
        codes_renewed: "You have new backup codes",
        code_used: "A backup code was used to sign in",
      })[data.change],
    text: ({ data }) => (data.left === null ? null : `Backup codes left: ${data.left}.`),
    url: securityUrl,
  }),
  "identity.linked": kind<{ provider: string }>({
    subject: "account",
    title: ({ data }) => `You can sign in with ${data.provider} now`,
    url: securityUrl,
  }),
  "identity.unlinked": kind<{ provider: string }>({
    subject: "account",
    title: ({ data }) => `${data.provider} no longer signs you in`,
    url: securityUrl,
  }),
  "payout_account.changed": kind<{ account: string }>({
    subject: "account",
    title: ({ data }) => `Your payouts now go to ${data.account}`,
    url: payoutsUrl,
  }),
  "session.created": kind<{ via: string; ip: string; userAgent: string | null }>({
    subject: "session",
    title: () => "New sign-in to your account",
    text: ({ data }) => `By ${data.via} from ${data.ip}${data.userAgent ? ` with ${data.userAgent}` : ""}.`,
    url: () => "/account/security",
  }),
  "account.viewed": kind<{ until: string }>({
    subject: "account",
    title: () => "An administrator views your account",
    text: ({ data }) =>
      `Read-only, until ${data.until} at the latest. Keys, payment methods and runs stay hidden. Ask support for the reason.`,
    url: securityUrl,
  }),
} satisfies Record<NotificationKind, KindDefinition<never>>;

const reasonOf = ({ reason }: { reason: string | null }) => (reason ? ` Reason: ${reason}.` : "");

const productUrl = (id: string, title: string) => `/p/${slugOf(title)}-${id}`;

export type DataOf<K extends NotificationKind> =
  (typeof kinds)[K] extends KindDefinition<infer D> ? D : never;

const MAX_LENGTH = 500;

/** PostgreSQL stores no NUL and no half of a surrogate pair; readers see no control characters. */
export const cleanData = (data: Data) =>
  Object.fromEntries(
    Object.entries(data).map(([name, value]) => [
      name,
      value === null ? null : toVisibleLine(value.slice(0, MAX_LENGTH)),
    ]),
  );

export interface StoredNotification {
  kind: NotificationKind;
  subjectId: string;
  actorName: string | null;
  data: Data;
}

/** The fields of the API that depend on the kind. */
export function renderNotification({ kind, subjectId, actorName, data }: StoredNotification) {
  const definition = kinds[kind] as KindDefinition<Data>;
  const facts = { data, actor: actorName ?? "Closed account" };
  return {
    title: definition.title(facts),
    text: definition.text?.(facts) || null,
    url: definition.url({ id: subjectId, data }),
    subject: { type: definition.subject, id: subjectId },
  };
}
