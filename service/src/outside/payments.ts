/** The port for payments: what the service asks of a payment provider, whichever it is. */

export interface PaymentRequest {
  /** Our row's id, and so the provider's idempotency key: asking twice charges once. */
  orderId: string;
  amountMinor: number;
  currency: string;
  methodId: string;
  /** What the buyer reads on the statement. */
  description: string;
}

export interface CardSummary {
  brand: string;
  last4: string;
}

export type PaymentOutcome =
  | { state: "succeeded"; paymentId: string; method: CardSummary }
  | { state: "declined"; paymentId: string; declineCode: string; method: CardSummary }
  /** The buyer has to approve at `url`; until then nothing is charged. */
  | { state: "requires_action"; paymentId: string; url: string; method: CardSummary }
  | { state: "canceled"; paymentId: string; method: CardSummary }
  /** Nothing was kept under the order's id: it may be charged with another method. */
  | { state: "unknown_method" };

export interface Payments {
  readonly name: string;
  /** Charges once per order; a repeat answers with the first charge as it stands now. */
  charge(request: PaymentRequest): Promise<PaymentOutcome>;
  /** The order's charge as it stands now; null when the provider never heard of it. */
  find(orderId: string): Promise<PaymentOutcome | null>;
  /**
   * Gives up a charge that waits for the buyer, and answers with the charge as it then stands: `canceled`, or
   * what the buyer made of it a moment earlier. Null when the provider never heard of it.
   */
  cancel(orderId: string): Promise<PaymentOutcome | null>;
  /** The method that pays when the buyer names none. */
  defaultMethod(userId: string): Promise<string | null>;
}

/** No answer, or none that can be read: the charge may or may not have been made, to be reconciled later. */
export class PaymentUnknown extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PaymentUnknown";
  }
}
