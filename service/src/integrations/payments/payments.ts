import type { AmountLimits } from "../../core/money/chargeable.ts";

declare module "../../core/context.ts" {
  interface Integrations {
    payments: Payments;
  }
}

/**
 * The port for payment providers. All ids that we send are those of our rows (TypeIDs). They are also the idempotency keys, so that
 * a repeated request moves money once.
 */

export interface ChargeRequest {
  /** Our row's id: an order's, or that of a payment for a plan. */
  orderId: string;
  amountMinor: bigint;
  currency: string;
  methodId: string;
  /** Our id of the buyer. */
  userId: string;
  /** The text on the buyer's statement. */
  description: string;
  /** Whether the buyer can confirm the charge at the bank. An absent buyer's charge that needs it is declined. */
  buyer: "present" | "absent";
  /** The method will be charged again without the buyer, so the bank is asked for that now. */
  recurs: boolean;
}

export interface CardSummary {
  brand: string;
  last4: string;
}

export interface SucceededCharge {
  state: "succeeded";
  paymentId: string;
  method: CardSummary;
  /** The captured amount, which the caller compares with the requested one. */
  amountMinor: bigint;
  currency: string;
  /** The whole amount was refunded since, by us or at the provider. */
  isRefunded: boolean;
  /** The provider's fee in the currency of the charge; null: not known yet. */
  feeMinor: bigint | null;
}

export type ChargeResult =
  | SucceededCharge
  | { state: "declined"; paymentId: string; declineCode: string; method: CardSummary }
  /** The buyer must approve at `url`; nothing is charged before. */
  | { state: "requires_action"; paymentId: string; url: string; method: CardSummary }
  | { state: "canceled"; paymentId: string; method: CardSummary }
  /** The provider processes it and sends a webhook. */
  | { state: "processing"; paymentId: string; method: CardSummary }
  /** The provider stored nothing for this order: it may be charged with another method. */
  | { state: "unknown_method" };

export interface RefundRequest {
  /** Our refund's id. */
  refundId: string;
  /** The provider's id of the charge. */
  paymentId: string;
  amountMinor: bigint;
  currency: string;
}

export type RefundResult =
  | { state: "succeeded" | "processing"; providerRefundId: string }
  | { state: "failed"; providerRefundId: string | null; failureCode: string };

export interface PayoutRequest {
  /** Our payout's id. */
  payoutId: string;
  /** The seller's account at the provider. */
  destination: string;
  amountMinor: bigint;
  currency: string;
}

export type PayoutResult =
  /** `reversedMinor`: the part that the provider took back. */
  | { state: "completed"; providerPayoutId: string; reversedMinor?: bigint }
  /** `returned`: the bank sent the money back. */
  | { state: "in_transit" | "returned"; providerPayoutId: string }
  | { state: "failed"; providerPayoutId: string | null; failureCode: string }
  /** Our balance at the provider does not suffice. Nothing moved, and the payout may be repeated. */
  | { state: "waits"; providerPayoutId: null; waitsFor: string };

export interface PayoutAccount {
  payoutsEnabled: boolean;
  /** The provider's code for why it pays nothing out; null: it does, or names none. */
  disabledReason: string | null;
  /** What the provider needs from the seller, or reviews. */
  requirements: PayoutRequirement[];
  /** Until when the provider pays out although something is due. */
  dueBy: Date | null;
}

export interface PayoutRequirement {
  /** The provider's name, such as `external_account`. */
  name: string;
  status: "due" | "past_due" | "in_review";
  /** Why the provider refused what the seller gave; null: it did not. */
  problem: string | null;
}

/** A charge that the buyer's bank takes back until the dispute is decided. */
export interface Dispute {
  disputeId: string;
  /** Our order's id, or that of a payment for a plan. */
  orderId: string;
  /** An inquiry is a question of the bank and takes no money; it is closed or becomes a dispute. */
  state: "inquiry" | "inquiry_closed" | "open" | "won" | "lost";
  amountMinor: bigint;
  /** The provider's fee for the dispute. */
  feeMinor: bigint;
  reason: string;
  /** The deadline for evidence; null: unknown, or no evidence is accepted. */
  evidenceDueBy: Date | null;
  createdAt: Date;
}

/** A charge as the provider lists it. */
export interface ListedCharge {
  paymentId: string;
  /** Our order's id, or that of a payment for a plan. */
  orderId: string;
  state: ChargeResult["state"];
  amountMinor: bigint;
  currency: string;
  /** The provider's fee; null: not known yet. */
  feeMinor: bigint | null;
  /** The whole amount was refunded since. */
  isRefunded: boolean;
  createdAt: Date;
}

/** A refund as the provider lists it. */
export interface ListedRefund {
  providerRefundId: string;
  /** Our refund's id; null: it was created in the provider's dashboard. */
  refundId: string | null;
  paymentId: string;
  /** The id of the charge's order or plan payment. */
  orderId: string;
  state: RefundResult["state"];
  /** null: it did not fail, or the provider gives no reason. */
  failureCode: string | null;
  amountMinor: bigint;
  currency: string;
  createdAt: Date;
}

/** A payout as the provider lists it. */
export interface ListedPayout {
  providerPayoutId: string;
  payoutId: string;
  state: "in_transit" | "completed" | "returned" | "failed";
  amountMinor: bigint;
  /** The part that the provider took back. */
  reversedMinor: bigint;
  currency: string;
  createdAt: Date;
}

/**
 * Names the changed row or dispute. The service then reads the new state from the provider, so webhooks may come repeatedly, late
 * and in any order.
 */
export type PaymentEvent =
  | { about: "payment"; orderId: string }
  /** A charge was refunded in part or whole, by us or in the provider's dashboard. */
  | { about: "refunds of a payment"; orderId: string }
  | { about: "refund"; refundId: string }
  | { about: "payout"; payoutId: string }
  | { about: "dispute"; disputeId: string };

export interface PaymentMethod extends CardSummary {
  id: string;
}

export interface Payments {
  readonly name: string;
  /** The amounts of a currency that the provider charges, refunds and pays out. */
  limitsOf(currency: string): AmountLimits;
  /** Charges once for each order; a repeated call returns the current state of the first charge. */
  charge(request: ChargeRequest): Promise<ChargeResult>;
  /** The current state of the order's charge; null: the provider has none. */
  findCharge(orderId: string): Promise<ChargeResult | null>;
  /**
   * Cancels a charge that waits for the buyer, and returns its state: `canceled`, or the buyer's decision a moment earlier. null:
   * the provider has none.
   */
  cancelCharge(orderId: string): Promise<ChargeResult | null>;
  /** Refunds once for each refund id. */
  refund(request: RefundRequest): Promise<RefundResult>;
  findRefund(refundId: string): Promise<RefundResult | null>;
  /** All refunds of a charge, by us or at the provider. */
  listRefundsOf(paymentId: string): Promise<ListedRefund[]>;
  /** Pays out once for each payout id. */
  payOut(request: PayoutRequest): Promise<PayoutResult>;
  findPayout(payoutId: string): Promise<PayoutResult | null>;
  /** null: the provider has no account with this id for us. */
  findPayoutAccount(accountId: string): Promise<PayoutAccount | null>;
  /** Finds or creates a user's payout account. Returns the provider's page for its setup, which works once and for a short time. */
  onboard(userId: string): Promise<{ accountId: string; url: string }>;
  findDispute(disputeId: string): Promise<Dispute | null>;
  /** Objects created since this time, in any order, without those of other services. */
  listCharges(since: Date): AsyncIterable<ListedCharge>;
  listRefunds(since: Date): AsyncIterable<ListedRefund>;
  listDisputes(since: Date): AsyncIterable<Dispute>;
  listPayouts(since: Date): AsyncIterable<ListedPayout>;
  /**
   * Returns the provider's page on which a user enters a card. It redirects to this path of ours with `card` in the query, which
   * `findMethod` takes as a token.
   */
  startCardSetup(userId: string, returnTo: string): Promise<string>;
  /** Finds a method by the provider's token or id; null: none. */
  findMethod(userId: string, token: string): Promise<PaymentMethod | null>;
  /** Detaches a method, so that it is not charged again. An unknown one is ignored. */
  detachMethod(methodId: string): Promise<void>;
  /** Why a token cannot be one of this provider, and which are; null: it may be one. */
  findTokenProblem(token: string): string | null;
  /** Methods of every user in a test environment. The first is the default. */
  readonly sharedMethods: readonly PaymentMethod[];
  /** The default payout account of every user; null: users must set one up. */
  readonly sharedPayoutAccount: string | null;
  /** Verifies and parses a webhook; null: it concerns nothing of ours. Throws a `WebhookSignatureError`. */
  parseWebhook(body: Buffer, headers: Record<string, string | undefined>): Promise<PaymentEvent | null>;
}

/** No readable answer: money may have moved, and reconciliation finds out. */
export class PaymentUnknown extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PaymentUnknown";
  }
}

/** The signature of a webhook is missing, wrong or too old. */
export class WebhookSignatureError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "WebhookSignatureError";
  }
}

/** Any amount, for a provider without limits. */
export const noAmountLimits = (): AmountLimits => ({ stepMinor: 1n, minimumMinor: 1n });
