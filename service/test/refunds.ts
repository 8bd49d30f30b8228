import assert from "node:assert/strict";
import { toUuid } from "../src/core/ids.ts";
import type {
  ChargeResult,
  Dispute,
  Payments,
  RefundRequest,
  RefundResult,
} from "../src/integrations/payments/payments.ts";
import { PaymentUnknown } from "../src/integrations/payments/payments.ts";
import type { Market } from "./market.ts";

/** The provider's refunds and disputes, and its faults. */
export interface FakeRefunds {
  /** "answers get lost": refunds succeed without an answer. "slow": they stay pending until the test ends them. */
  trouble: "none" | "answers get lost" | "down" | "fails" | "slow";
  refunds: Map<string, RefundRequest & { outcome: RefundResult }>;
  disputes: Map<string, Dispute>;
  /** The number of refund requests, repeats included. */
  asked: number;
  /** The provider's fee of a charge. */
  feeMinor: bigint | null;
}

export const createFakeRefunds = (): FakeRefunds => ({
  trouble: "none",
  refunds: new Map(),
  disputes: new Map(),
  asked: 0,
  feeMinor: null,
});

/** Adds refunds to the payments, one per idempotency key. */
export function withRefunds(book: FakeRefunds, payments: Payments): Payments {
  const outcomeOf = (refundId: string): RefundResult => {
    const providerRefundId = `re_${refundId}`;
    if (book.trouble === "fails") return { state: "failed", providerRefundId, failureCode: "card_closed" };
    return { state: book.trouble === "slow" ? "processing" : "succeeded", providerRefundId };
  };
  const keeping = <Outcome extends ChargeResult | null>(outcome: Outcome): Outcome =>
    outcome?.state === "succeeded" ? { ...outcome, feeMinor: book.feeMinor } : outcome;
  return {
    ...payments,
    charge: async (request) => keeping(await payments.charge(request)),
    findCharge: async (orderId) => keeping(await payments.findCharge(orderId)),
    async refund(request) {
      book.asked++;
      if (book.trouble === "down") throw new PaymentUnknown("nobody is there");
      const kept = book.refunds.get(request.refundId) ?? { ...request, outcome: outcomeOf(request.refundId) };
      assert.deepEqual({ ...kept, outcome: null }, { ...request, outcome: null }, "one key, one refund");
      book.refunds.set(request.refundId, kept);
      if (book.trouble === "answers get lost") throw new PaymentUnknown("no answer");
      return kept.outcome;
    },
    async findRefund(refundId) {
      if (book.trouble === "down") throw new PaymentUnknown("nobody is there");
      return book.refunds.get(refundId)?.outcome ?? null;
    },
    async findDispute(disputeId) {
      if (book.trouble === "down") throw new PaymentUnknown("nobody is there");
      return book.disputes.get(disputeId) ?? null;
    },
    async *listDisputes(since) {
      if (book.trouble === "down") throw new PaymentUnknown("nobody is there");
      for (const dispute of book.disputes.values()) if (dispute.createdAt >= since) yield dispute;
    },
  };
}

/** The refunded amount of an order at the provider, in minor units. */
export async function refundedMinorOf(market: Market, book: FakeRefunds, orderId: string): Promise<bigint> {
  const { rows } = await market.query("select payment_id from orders where id = $1", [
    toUuid("ord", orderId),
  ]);
  const done = [...book.refunds.values()].filter(
    ({ paymentId, outcome }) => paymentId === rows[0].payment_id && outcome.state === "succeeded",
  );
  return done.reduce((sum, { amountMinor }) => sum + amountMinor, 0n);
}

/** The ledger accounts of an order in minor units, without zeros. */
export async function accountsOf(market: Market, orderId: string): Promise<Record<string, number>> {
  const { rows } = await market.query(
    `select account, sum(amount_minor)::int as sum from ledger_entries where order_id = $1
      group by account having sum(amount_minor) <> 0 order by account`,
    [toUuid("ord", orderId)],
  );
  return Object.fromEntries(rows.map(({ account, sum }) => [account, sum]));
}

/** Opens a dispute of an order. */
export function openDispute(book: FakeRefunds, orderId: string, fields: Partial<Dispute> = {}): string {
  const disputeId = fields.disputeId ?? `dp_${orderId}`;
  const known = book.disputes.get(disputeId);
  book.disputes.set(disputeId, {
    disputeId,
    orderId,
    state: "open",
    amountMinor: 1_000n,
    feeMinor: 0n,
    reason: "fraudulent",
    evidenceDueBy: null,
    createdAt: new Date("2026-06-15T12:00:00.000Z"),
    ...known,
    ...fields,
  });
  return disputeId;
}
