import type Stripe from "stripe";
import type { Dispute, Payments } from "./payments.ts";
import { fromStripe } from "./stripe-amounts.ts";
import {
  createdSince,
  listWithUnknownResult,
  nullIfMissing,
  type StripeAccess,
  toDate,
  withUnknownResult,
} from "./stripe-client.ts";

export const createDisputes = ({ stripe }: StripeAccess): Pick<Payments, "findDispute" | "listDisputes"> => ({
  async findDispute(disputeId) {
    const dispute = await withUnknownResult(() =>
      nullIfMissing(() => stripe.disputes.retrieve(disputeId, { expand: ["payment_intent"] })),
    );
    return dispute && toDispute(dispute);
  },
  async *listDisputes(since) {
    const disputes = stripe.disputes.list({ ...createdSince(since), expand: ["data.payment_intent"] });
    for await (const one of listWithUnknownResult(disputes)) {
      const dispute = toDispute(one);
      if (dispute) yield dispute;
    }
  },
});

/** null: the dispute is about no charge of this service. */
function toDispute(dispute: Stripe.Dispute): Dispute | null {
  const intent = dispute.payment_intent;
  const orderId = intent && typeof intent === "object" ? intent.metadata["order_id"] : undefined;
  if (!orderId) return null;
  return {
    disputeId: dispute.id,
    orderId,
    state: disputeStates[dispute.status] ?? "open",
    amountMinor: fromStripe(dispute.amount, dispute.currency),
    feeMinor: disputeFeeOf(dispute),
    reason: dispute.reason,
    evidenceDueBy: evidenceDueBy(dispute),
    createdAt: toDate(dispute.created),
  };
}

/** Stripe sends 0 where the bank accepts no evidence. */
function evidenceDueBy({ evidence_details: { due_by } }: Stripe.Dispute): Date | null {
  return due_by ? toDate(due_by) : null;
}

/** 0 if Stripe settles in another currency, as for the fee of a charge. */
const disputeFeeOf = ({ balance_transactions: booked, currency }: Stripe.Dispute): bigint =>
  booked
    .filter((one) => one.currency === currency)
    .reduce((sum, { fee }) => sum + fromStripe(fee, currency), 0n);

const disputeStates: Partial<Record<Stripe.Dispute.Status, Dispute["state"]>> = {
  warning_needs_response: "inquiry",
  warning_under_review: "inquiry",
  warning_closed: "inquiry_closed",
  won: "won",
  prevented: "won",
  lost: "lost",
};
