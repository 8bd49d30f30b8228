import type Stripe from "stripe";
import { type PaymentEvent, type Payments, WebhookSignatureError } from "./payments.ts";
import { nullIfMissing, type StripeAccess, withUnknownResult } from "./stripe-client.ts";

export const createWebhooks = ({ stripe }: StripeAccess, secret: string): Pick<Payments, "parseWebhook"> => ({
  async parseWebhook(body, headers) {
    const event = await verifyEvent(stripe, body, headers["stripe-signature"], secret);
    return toPaymentEvent(event) ?? withUnknownResult(() => findDashboardRefund(stripe, event));
  },
});

async function verifyEvent(
  stripe: Stripe,
  body: Buffer,
  signature: string | undefined,
  secret: string,
): Promise<Stripe.Event> {
  try {
    return await stripe.webhooks.constructEventAsync(body, signature ?? "", secret);
  } catch (cause) {
    throw new WebhookSignatureError("The signature is not Stripe's", { cause });
  }
}

function toPaymentEvent({ type, data: { object } }: Stripe.Event): PaymentEvent | null {
  const about = (object as { metadata?: Record<string, string> | null }).metadata ?? {};
  if (type.startsWith("charge.dispute."))
    return { about: "dispute", disputeId: (object as Stripe.Dispute).id };
  if (about["refund_id"]) return { about: "refund", refundId: about["refund_id"] };
  if (about["payout_id"]) return { about: "payout", payoutId: about["payout_id"] };
  if (!about["order_id"]) return null;
  if (type.startsWith("payment_intent.")) return { about: "payment", orderId: about["order_id"] };
  if (type === "charge.refunded") return { about: "refunds of a payment", orderId: about["order_id"] };
  return null;
}

/** A refund from Stripe's dashboard has no row of ours, but its payment has. */
async function findDashboardRefund(
  stripe: Stripe,
  { data: { object } }: Stripe.Event,
): Promise<PaymentEvent | null> {
  if (object.object !== "refund" || typeof object.payment_intent !== "string") return null;
  const { payment_intent: intentId } = object;
  const intent = await nullIfMissing(() => stripe.paymentIntents.retrieve(intentId));
  const orderId = intent?.metadata["order_id"];
  return orderId ? { about: "refunds of a payment", orderId } : null;
}
