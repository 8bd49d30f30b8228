import type Stripe from "stripe";
import type { ListedRefund, Payments, RefundRequest, RefundResult } from "./payments.ts";
import { fromStripe } from "./stripe-amounts.ts";
import {
  createdSince,
  failOrThrow,
  idempotencyOptions,
  listWithUnknownResult,
  type StripeAccess,
  toDate,
  toStripeAmount,
  withUnknownResult,
} from "./stripe-client.ts";

const EXPANDED_LIST = ["data.payment_intent"];

export const createRefunds = (
  access: StripeAccess,
): Pick<Payments, "refund" | "findRefund" | "listRefundsOf" | "listRefunds"> => ({
  async refund(request) {
    await access.references.store(request.refundId, request.paymentId);
    return withUnknownResult(() => refund(access, request));
  },
  async findRefund(refundId) {
    const paymentId = await access.references.find(refundId);
    if (!paymentId) return null;
    const refunds = access.stripe.refunds.list({ payment_intent: paymentId, limit: 100 });
    for await (const refund of listWithUnknownResult(refunds))
      if (refund.metadata?.["refund_id"] === refundId) return toRefundResult(refund);
    return null;
  },
  async listRefundsOf(paymentId) {
    const list = { payment_intent: paymentId, limit: 100, expand: EXPANDED_LIST };
    const refunds: ListedRefund[] = [];
    for await (const refund of toListedRefunds(access.stripe.refunds.list(list))) refunds.push(refund);
    return refunds;
  },
  listRefunds: (since) =>
    toListedRefunds(access.stripe.refunds.list({ ...createdSince(since), expand: EXPANDED_LIST })),
});

async function refund(
  { stripe }: StripeAccess,
  { refundId, paymentId, ...amount }: RefundRequest,
): Promise<RefundResult> {
  try {
    const params = {
      payment_intent: paymentId,
      amount: toStripeAmount(amount),
      metadata: { refund_id: refundId },
    };
    return toRefundResult(await stripe.refunds.create(params, idempotencyOptions(refundId, "refund")));
  } catch (error) {
    return failOrThrow(error, (failureCode) => ({ state: "failed", providerRefundId: null, failureCode }));
  }
}

function toRefundResult(refund: Stripe.Refund): RefundResult {
  const providerRefundId = refund.id;
  if (refund.status === "succeeded") return { state: "succeeded", providerRefundId };
  if (refund.status === "failed" || refund.status === "canceled")
    return { state: "failed", providerRefundId, failureCode: refund.failure_reason ?? refund.status };
  return { state: "processing", providerRefundId };
}

async function* toListedRefunds(refunds: AsyncIterable<Stripe.Refund>): AsyncGenerator<ListedRefund> {
  for await (const refund of listWithUnknownResult(refunds)) {
    const listed = toListedRefund(refund);
    if (listed) yield listed;
  }
}

/** null: the refund belongs to no charge of this service. */
function toListedRefund(refund: Stripe.Refund): ListedRefund | null {
  const intent = refund.payment_intent;
  if (!intent || typeof intent !== "object") return null;
  const orderId = intent.metadata["order_id"];
  if (!orderId) return null;
  const result = toRefundResult(refund);
  return {
    providerRefundId: refund.id,
    refundId: refund.metadata?.["refund_id"] ?? null,
    paymentId: intent.id,
    orderId,
    state: result.state,
    failureCode: result.state === "failed" ? result.failureCode : null,
    amountMinor: fromStripe(refund.amount, refund.currency),
    currency: refund.currency.toUpperCase(),
    createdAt: toDate(refund.created),
  };
}
