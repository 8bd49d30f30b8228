import type { AmountLimits } from "../../core/money/chargeable.ts";

declare module "../../core/context.ts" {
  interface Integrations {
    payments: Payments;
  }
}

/**
 * The port for payments: what the service asks of a payment provider, whichever it is. All ids that we give are our rows' own
 * (TypeIDs); they are the provider's idempotency keys too, so that asking twice moves money once.
 */

export interface ChargeRequest {
  /** Our row's id: an order's, or that of a payment for a plan. */
  orderId: string;
  amountMinor: bigint;
  currency: string;
  methodId: string;
  /** Who pays, as our own id. */
  userId: string;
  /** What the buyer reads on the statement. */
  description: string;
  /** Whether the buyer is there to confirm what their bank asks. In their absence a charge that needs it is declined. */
  buyer: "present" | "absent";
  /** The method will be charged again in its buyer's absence: while they are there, their bank is asked for that too. */
  recurs: boolean;
}

export interface CardSummary {
  brand: string;
  last4: string;
}

/** The money is there. */
export interface SucceededCharge {
  state: "succeeded";
  paymentId: string;
  method: CardSummary;
  /** What was taken of the buyer, for whoever asked to hold against what they asked for. */
  amountMinor: bigint;
  currency: string;
  /** All of it went back since, whoever saw to that. */
  isRefunded: boolean;
  /** What the provider kept of it for itself, in the charge's currency; null until it says. */
  feeMinor: bigint | null;
}

export type ChargeResult =
  | SucceededCharge
  | { state: "declined"; paymentId: string; declineCode: string; method: CardSummary }
  /** The buyer has to approve at `url`; until then nothing is charged. */
  | { state: "requires_action"; paymentId: string; url: string; method: CardSummary }
  | { state: "canceled"; paymentId: string; method: CardSummary }
  /** The provider has it and will tell. */
  | { state: "processing"; paymentId: string; method: CardSummary }
  /** Nothing was kept under the order's id: it may be charged with another method. */
  | { state: "unknown_method" };

export interface RefundRequest {
  /** Our refund's id. */
  refundId: string;
  /** Of the charge that is given back, as the provider named it. */
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
  /** `reversedMinor`: what of it the provider took back, without taking back all. */
  | { state: "completed"; providerPayoutId: string; reversedMinor?: bigint }
  /** `returned`: it was paid, and the bank sent it back. */
  | { state: "in_transit" | "returned"; providerPayoutId: string }
  | { state: "failed"; providerPayoutId: string | null; failureCode: string }
  /** Nothing moved, through no fault of the seller: what the provider has of ours is not enough. It may be asked for again. */
  | { state: "waits"; providerPayoutId: null; waitsFor: string };

export interface PayoutAccount {
  payoutsEnabled: boolean;
}

/** What a buyer's bank takes back of a charge until it is decided. */
export interface Dispute {
  disputeId: string;
  /** Our order's id, or that of a payment for a plan. */
  orderId: string;
  /** An inquiry is a question of the bank's, which takes nothing; it is closed, or becomes a dispute. */
  state: "inquiry" | "inquiry_closed" | "open" | "won" | "lost";
  amountMinor: bigint;
  /** What the provider charges for it. */
  feeMinor: bigint;
  reason: string;
  /** Until when the bank hears the other side; null: nobody says, or it does not. */
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
  /** What the provider kept of it for itself; null until it says. */
  feeMinor: bigint | null;
  /** All of it went back since. */
  isRefunded: boolean;
  createdAt: Date;
}

/** A refund as the provider lists it. */
export interface ListedRefund {
  providerRefundId: string;
  /** Our refund's id; null: it was made at the provider's own dashboard. */
  refundId: string | null;
  paymentId: string;
  /** Of the charge: our order's id, or that of a payment for a plan. */
  orderId: string;
  state: RefundResult["state"];
  /** Why it failed; null: it did not, or nobody says. */
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
  /** What of it the provider took back, without taking back all. */
  reversedMinor: bigint;
  currency: string;
  createdAt: Date;
}

/**
 * Something changed: which of our rows, or which dispute, is to be asked for. What it changed to is read from the provider afterwards,
 * so that notices may come twice, late and in any order.
 */
export type PaymentEvent =
  | { about: "payment"; orderId: string }
  /** Some of a charge was given back, by us or at the provider's own dashboard. */
  | { about: "refunds of a payment"; orderId: string }
  | { about: "refund"; refundId: string }
  | { about: "payout"; payoutId: string }
  | { about: "dispute"; disputeId: string };

export interface PaymentMethod extends CardSummary {
  id: string;
}

export interface Payments {
  readonly name: string;
  /** Which amounts of a currency it charges, gives back and pays out. */
  limitsOf(currency: string): AmountLimits;
  /** Charges once per order; a repeat answers with the first charge as it stands now. */
  charge(request: ChargeRequest): Promise<ChargeResult>;
  /** The order's charge as it stands now; null when the provider never heard of it. */
  findCharge(orderId: string): Promise<ChargeResult | null>;
  /**
   * Gives up a charge that waits for the buyer, and answers with the charge as it then stands: `canceled`, or
   * what the buyer made of it a moment earlier. Null when the provider never heard of it.
   */
  cancelCharge(orderId: string): Promise<ChargeResult | null>;
  /** Gives back once per refund. */
  refund(request: RefundRequest): Promise<RefundResult>;
  findRefund(refundId: string): Promise<RefundResult | null>;
  /** All refunds of a charge, whoever made them. */
  listRefundsOf(paymentId: string): Promise<ListedRefund[]>;
  /** Pays out once per payout. */
  payOut(request: PayoutRequest): Promise<PayoutResult>;
  findPayout(payoutId: string): Promise<PayoutResult | null>;
  /** Whether an account gets what is paid out to it; null when the provider has none of that id for us. */
  findPayoutAccount(accountId: string): Promise<PayoutAccount | null>;
  /** A person's account for payouts, made when they have none, and a page of the provider's on which they set it up: once, and soon. */
  onboard(userId: string): Promise<{ accountId: string; url: string }>;
  findDispute(disputeId: string): Promise<Dispute | null>;
  /** Everything of ours that was made there since a moment, in any order; what names none of our rows is another's. */
  listCharges(since: Date): AsyncIterable<ListedCharge>;
  listRefunds(since: Date): AsyncIterable<ListedRefund>;
  listDisputes(since: Date): AsyncIterable<Dispute>;
  listPayouts(since: Date): AsyncIterable<ListedPayout>;
  /** A method by the token or id that the provider gave the person; null when there is none of that name. */
  findMethod(userId: string, token: string): Promise<PaymentMethod | null>;
  /** The method is charged no more: the provider keeps it for nobody. One that it does not have, or not any more, is forgotten too. */
  detachMethod(methodId: string): Promise<void>;
  /** Why a token or id can be none of this provider's, and what to name in its place; null where it may be one. */
  findTokenProblem(token: string): string | null;
  /** Methods that everybody has without asking: the named ones of a test environment. The first is everybody's default. */
  readonly sharedMethods: readonly PaymentMethod[];
  /** Where the provider sends a person's payouts when nothing else is known; null: they must say first. */
  readonly sharedPayoutAccount: string | null;
  /** Reads what the provider posts to us; null when it concerns nothing of ours. Throws a `NoticeRefused` when it is not the provider's. */
  parseWebhook(body: Buffer, headers: Record<string, string | undefined>): Promise<PaymentEvent | null>;
}

/** No answer, or none that can be read: money may or may not have moved, to be reconciled later. */
export class PaymentUnknown extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PaymentUnknown";
  }
}

/** The signature of a notice is missing, wrong or too old. */
export class WebhookSignatureError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NoticeRefused";
  }
}

/** Every amount, as of a provider that has no limits. */
export const noAmountLimits = (): AmountLimits => ({ stepMinor: 1n, minimumMinor: 1n });
