import { type Payments, PaymentUnknown } from "../src/integrations/payments/payments.ts";

/** The connection to the provider. Its faults lose answers, or requests. */
export interface PaymentConnection {
  trouble: "none" | "answers get lost" | "down";
}

export function withConnectionTrouble(line: PaymentConnection, payments: Payments): Payments {
  const ask = async <T>(question: () => Promise<T>): Promise<T> => {
    if (line.trouble === "down") throw new PaymentUnknown("nobody is there");
    const answer = await question();
    if (line.trouble === "answers get lost") throw new PaymentUnknown("no answer");
    return answer;
  };
  async function* list<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
    await ask(async () => {});
    yield* items;
  }
  return {
    ...payments,
    listCharges: (since) => list(payments.listCharges(since)),
    listRefunds: (since) => list(payments.listRefunds(since)),
    listDisputes: (since) => list(payments.listDisputes(since)),
    listPayouts: (since) => list(payments.listPayouts(since)),
    charge: (request) => ask(() => payments.charge(request)),
    findCharge: (orderId) => ask(() => payments.findCharge(orderId)),
    cancelCharge: (orderId) => ask(() => payments.cancelCharge(orderId)),
    refund: (request) => ask(() => payments.refund(request)),
    findRefund: (refundId) => ask(() => payments.findRefund(refundId)),
    listRefundsOf: (paymentId) => ask(() => payments.listRefundsOf(paymentId)),
    payOut: (request) => ask(() => payments.payOut(request)),
    findPayout: (payoutId) => ask(() => payments.findPayout(payoutId)),
    findPayoutAccount: (accountId) => ask(() => payments.findPayoutAccount(accountId)),
    onboard: (userId) => ask(() => payments.onboard(userId)),
    findDispute: (disputeId) => ask(() => payments.findDispute(disputeId)),
    detachMethod: (methodId) => ask(() => payments.detachMethod(methodId)),
    findMethod: (userId, token) => ask(() => payments.findMethod(userId, token)),
  };
}
