import Stripe from "stripe";
import {
  type ChargeRequest,
  type ChargeResult,
  type Dispute,
  type ListedRefund,
  type PaymentEvent,
  type PaymentMethod,
  type Payments,
  PaymentUnknown,
  type PayoutRequest,
  type PayoutResult,
  type RefundResult,
  WebhookSignatureError,
} from "./payments.ts";
import { fromStripe, stripeLimits, toStripe } from "./stripe-amounts.ts";
import type { StripeReferences } from "./stripe-references.ts";

const ANSWER_DEADLINE_MS = 20_000;
/** Stripe's own retries of a request that was not answered, under the same idempotency key. */
const RETRIES = 2;

export interface StripeOptions {
  secretKey: string;
  webhookSecret: string;
  /** Another address than Stripe's own, for tests: a server that speaks its protocol. */
  apiUrl: string | null;
  references: StripeReferences;
  /** Where the buyer comes back to from their bank. */
  returnUrl: () => string;
}

type Intent = Stripe.PaymentIntent;

/**
 * Payments by Stripe. A charge is a PaymentIntent that is made first, noted, and only then confirmed: when the answer to that is
 * lost, the intent is known by its own name and tells how it stands. Sellers are connected accounts, payouts are transfers to them.
 */
export function createStripePayments({
  references,
  returnUrl,
  webhookSecret,
  ...options
}: StripeOptions): Payments {
  const stripe = new Stripe(options.secretKey, {
    timeout: ANSWER_DEADLINE_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
    appInfo: { name: "Stoa" },
    ...addressOf(options.apiUrl),
  });

  async function customerOf(userId: string): Promise<string> {
    const known = await references.find(userId);
    if (known) return known;
    const customer = await stripe.customers.create(
      { metadata: { user_id: userId } },
      idempotencyOptions(userId, "customer"),
    );
    return references.store(userId, customer.id);
  }

  /** Which countries and capabilities it may have is said in the marketplace's own settings at Stripe. */
  async function accountOf(userId: string): Promise<string> {
    const ours = `${userId}:account`;
    const known = await references.find(ours);
    if (known) return known;
    const account = await stripe.accounts.create(
      { type: "express", metadata: { user_id: userId } },
      idempotencyOptions(userId, "account"),
    );
    return references.store(ours, account.id);
  }

  async function intentOf(request: ChargeRequest): Promise<string> {
    const known = await references.find(request.orderId);
    if (known) return known;
    const intent = await stripe.paymentIntents.create(
      {
        amount: toStripeAmount(request),
        currency: request.currency.toLowerCase(),
        customer: await customerOf(request.userId),
        payment_method: request.methodId,
        allowed_payment_method_types: ["card"],
        description: request.description,
        ...(request.recurs && request.buyer === "present" && { setup_future_usage: "off_session" as const }),
        metadata: { order_id: request.orderId },
      },
      idempotencyOptions(request.orderId, "intent"),
    );
    return references.store(request.orderId, intent.id);
  }

  const readIntent = (id: string) => stripe.paymentIntents.retrieve(id, { expand: EXPANDED });

  /** A refund that was made at Stripe's dashboard names no row of ours; the payment that it gives back does. */
  async function noticeOfDashboardRefund({ data: { object } }: Stripe.Event): Promise<PaymentEvent | null> {
    if (object.object !== "refund" || typeof object.payment_intent !== "string") return null;
    const { payment_intent: intentId } = object;
    const intent = await nullIfMissing(() => stripe.paymentIntents.retrieve(intentId));
    const orderId = intent?.metadata["order_id"];
    return orderId ? { about: "refunds of a payment", orderId } : null;
  }

  /** The intent behind one of our ids; null when we never came so far as to make one. */
  async function knownIntent(orderId: string): Promise<Intent | null> {
    const id = await references.find(orderId);
    return id === null ? null : readIntent(id);
  }

  async function confirm(id: string, { orderId, buyer }: ChargeRequest): Promise<Intent> {
    const intent = await readIntent(id);
    if (intent.status !== "requires_confirmation") return intent;
    try {
      return await stripe.paymentIntents.confirm(
        id,
        { ...(buyer === "present" ? { return_url: returnUrl() } : { off_session: true }), expand: EXPANDED },
        idempotencyOptions(orderId, "confirm"),
      );
    } catch (error) {
      // A decline comes as an error; the intent tells more.
      if (error instanceof Stripe.errors.StripeCardError) return readIntent(id);
      throw error;
    }
  }

  /**
   * The key of the next attempt at a payout. Under the same key Stripe repeats a refusal for a day or longer, also when the balance has
   * become enough; where we do not know what became of an attempt, its key stays.
   */
  async function transferKeyOf(payoutId: string): Promise<string> {
    const nth = (attempt: number) => (attempt === 1 ? payoutId : `${payoutId}:${attempt}`);
    let attempt = 1;
    while (await references.find(refusalKeyOf(nth(attempt)))) attempt++;
    return nth(attempt);
  }

  async function transfer({ payoutId, destination, ...amount }: PayoutRequest): Promise<PayoutResult> {
    const key = await transferKeyOf(payoutId);
    try {
      const params = {
        amount: toStripeAmount(amount),
        currency: amount.currency.toLowerCase(),
        destination,
        transfer_group: payoutId,
        metadata: { payout_id: payoutId },
      };
      return toPayoutResult(await stripe.transfers.create(params, idempotencyOptions(key, "transfer")));
    } catch (error) {
      if (!isInsufficientBalance(error)) return failOrThrow(error, failedPayout);
      await references.store(refusalKeyOf(key), error.requestId ?? "unnamed");
      return { state: "waits", providerPayoutId: null, waitsFor: INSUFFICIENT_BALANCE };
    }
  }

  return {
    name: "stripe",
    limitsOf: stripeLimits,
    async charge(request) {
      try {
        return toChargeResult(await withUnknownResult(async () => confirm(await intentOf(request), request)));
      } catch (error) {
        if (isMissing(error)) return { state: "unknown_method" };
        return failOrThrow(error, (declineCode) => ({
          ...{ state: "declined", declineCode },
          ...{ paymentId: request.orderId, method: UNKNOWN_CARD },
        }));
      }
    },
    async findCharge(orderId) {
      const intent = await withUnknownResult(() => knownIntent(orderId));
      // Made and never confirmed: nobody was charged, nor can be but by us.
      return intent && intent.status !== "requires_confirmation" ? toChargeResult(intent) : null;
    },
    async cancelCharge(orderId) {
      const intent = await withUnknownResult(() => knownIntent(orderId));
      if (!intent) return null;
      if (!CANCELABLE.has(intent.status)) return toChargeResult(intent);
      return toChargeResult(
        await withUnknownResult(() =>
          stripe.paymentIntents.cancel(
            intent.id,
            { expand: EXPANDED },
            idempotencyOptions(orderId, "cancel"),
          ),
        ),
      );
    },
    async refund({ refundId, paymentId, ...amount }) {
      await references.store(refundId, paymentId);
      return withUnknownResult(async () => {
        try {
          const params = {
            payment_intent: paymentId,
            amount: toStripeAmount(amount),
            metadata: { refund_id: refundId },
          };
          return toRefundResult(await stripe.refunds.create(params, idempotencyOptions(refundId, "refund")));
        } catch (error) {
          return failOrThrow(error, (failureCode) => ({
            state: "failed",
            providerRefundId: null,
            failureCode,
          }));
        }
      });
    },
    async findRefund(refundId) {
      const paymentId = await references.find(refundId);
      if (!paymentId) return null;
      const refund = await withUnknownResult(() =>
        findFirst(
          stripe.refunds.list({ payment_intent: paymentId, limit: 100 }),
          ({ metadata }) => metadata?.["refund_id"] === refundId,
        ),
      );
      return refund && toRefundResult(refund);
    },
    listRefundsOf: (paymentId) =>
      withUnknownResult(async () => {
        const refunds: ListedRefund[] = [];
        const list = { payment_intent: paymentId, limit: 100, expand: ["data.payment_intent"] };
        for await (const refund of stripe.refunds.list(list)) refunds.push(...listedRefund(refund));
        return refunds;
      }),
    payOut: (request) => withUnknownResult(() => transfer(request)),
    async findPayout(payoutId) {
      const { data } = await withUnknownResult(() =>
        stripe.transfers.list({ transfer_group: payoutId, limit: 1 }),
      );
      return data[0] ? toPayoutResult(data[0]) : null;
    },
    async findPayoutAccount(accountId) {
      const account = await withUnknownResult(() => nullIfNotOurs(() => stripe.accounts.retrieve(accountId)));
      return (
        account && { payoutsEnabled: account.payouts_enabled && account.capabilities?.transfers === "active" }
      );
    },
    onboard: (userId) =>
      withUnknownResult(async () => {
        const accountId = await accountOf(userId);
        const { url } = await stripe.accountLinks.create({
          ...{ account: accountId, type: "account_onboarding" },
          ...{ return_url: returnUrl(), refresh_url: returnUrl() },
        });
        return { accountId, url };
      }),
    findDispute: (disputeId) =>
      withUnknownResult(async () => {
        const dispute = await nullIfMissing(() =>
          stripe.disputes.retrieve(disputeId, { expand: ["payment_intent"] }),
        );
        return dispute && disputeOf(dispute);
      }),
    async *listCharges(since) {
      const intents = stripe.paymentIntents.list({ ...page(since), expand: EXPANDED_LIST });
      for await (const intent of listWithUnknownResult(intents)) yield* listedCharge(intent);
    },
    async *listRefunds(since) {
      const refunds = stripe.refunds.list({ ...page(since), expand: ["data.payment_intent"] });
      for await (const refund of listWithUnknownResult(refunds)) yield* listedRefund(refund);
    },
    async *listDisputes(since) {
      const disputes = stripe.disputes.list({ ...page(since), expand: ["data.payment_intent"] });
      for await (const one of listWithUnknownResult(disputes)) {
        const dispute = disputeOf(one);
        if (dispute) yield dispute;
      }
    },
    async *listPayouts(since) {
      for await (const transfer of listWithUnknownResult(stripe.transfers.list(page(since))))
        yield* listedPayout(transfer);
    },
    findMethod: (userId, token) =>
      withUnknownResult(async () => {
        if (!IS_ID.test(token)) return null;
        const customer = await customerOf(userId);
        const method =
          (await nullIfRefused(() => stripe.paymentMethods.attach(token, { customer }))) ??
          (await nullIfRefused(() => stripe.paymentMethods.retrieve(token)));
        return method?.customer === customer ? methodOf(method) : null;
      }),
    async detachMethod(methodId) {
      // What is not attached, or not there, cannot be detached.
      await withUnknownResult(() => nullIfRefused(() => stripe.paymentMethods.detach(methodId)));
    },
    findTokenProblem: (token) => (token.startsWith("pm_test_") ? TEST_METHOD_REFUSED : null),
    sharedMethods: [],
    sharedPayoutAccount: null,
    async parseWebhook(body, headers) {
      const event = await verifyEvent(stripe, body, headers["stripe-signature"], webhookSecret);
      return toPaymentEvent(event) ?? withUnknownResult(() => noticeOfDashboardRefund(event));
    },
  };
}

const TEST_METHOD_REFUSED =
  "is a name of the built-in test provider, and this service is paid through Stripe: name a method of Stripe's, with a test key one such as pm_card_visa";

/** Stripe's ids are words. Anything else would be another path. */
const IS_ID = /^\w+$/;

const EXPANDED = ["payment_method", "latest_charge.balance_transaction"];
const EXPANDED_LIST = ["data.latest_charge.balance_transaction"];
const page = (since: Date) => ({ limit: 100, created: { gte: Math.floor(since.getTime() / 1000) } });
const CANCELABLE = new Set<Intent["status"]>([
  "requires_payment_method",
  "requires_confirmation",
  "requires_action",
  "processing",
]);

/** What Stripe calls it that the marketplace's own balance does not cover a transfer. */
const INSUFFICIENT_BALANCE = "balance_insufficient";

const isInsufficientBalance = (error: unknown): error is Stripe.errors.StripeInvalidRequestError =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === INSUFFICIENT_BALANCE;

/** Under which a refusal of ours is kept: by then its key is used up. */
const refusalKeyOf = (key: string) => `${key}:refused`;

const failedPayout = (failureCode: string): PayoutResult => ({
  state: "failed",
  providerPayoutId: null,
  failureCode,
});

const idempotencyOptions = (ourId: string, step: string) => ({ idempotencyKey: `${ourId}:${step}` });

function addressOf(apiUrl: string | null): Stripe.StripeConfig {
  if (!apiUrl) return {};
  const { protocol, hostname, port } = new URL(apiUrl);
  const scheme = protocol === "http:" ? "http" : "https";
  return { protocol: scheme, host: hostname, port: port || (scheme === "http" ? "80" : "443") };
}

/** Whatever keeps us from reading an answer leaves the payment unknown; an understood refusal is thrown as it is. */
async function withUnknownResult<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isResultUnknown(error)) throw error;
    throw new PaymentUnknown("No answer of Stripe", { cause: error });
  }
}

/** What a list yields, page after page, each of which may not be answered. */
async function* listWithUnknownResult<T>(list: AsyncIterable<T>): AsyncGenerator<T> {
  const items = list[Symbol.asyncIterator]();
  for (;;) {
    const next = await withUnknownResult(() => items.next());
    if (next.done) return;
    yield next.value;
  }
}

const isResultUnknown = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeConnectionError ||
  error instanceof Stripe.errors.StripeAPIError ||
  error instanceof Stripe.errors.StripeRateLimitError ||
  error instanceof Stripe.errors.StripeIdempotencyError;

const isMissing = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === "resource_missing";

async function nullIfMissing<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** A card that its bank will not have checked is as good as none, and so is what is another's or was removed. */
async function nullIfRefused<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Stripe.errors.StripeCardError) return null;
    if (error instanceof Stripe.errors.StripeInvalidRequestError) return null;
    throw error;
  }
}

/** Of an account that is not there, or not connected to ours, Stripe says that we may not see it. */
async function nullIfNotOurs<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await nullIfMissing(ask);
  } catch (error) {
    if (error instanceof Stripe.errors.StripePermissionError) return null;
    throw error;
  }
}

/** Stripe has no such amount: a part of its smallest unit. */
class NoSuchAmount extends Error {}

/** An amount as Stripe is told it. */
function toStripeAmount({ amountMinor, currency }: { amountMinor: bigint; currency: string }): number {
  const amount = toStripe(amountMinor, currency);
  if (amount === null) throw new NoSuchAmount(`Stripe has no ${amountMinor} minor units of ${currency}`);
  return amount;
}

/** A refusal that will be the same however often one asks. */
function failOrThrow<T>(error: unknown, failed: (code: string) => T): T {
  if (error instanceof NoSuchAmount) return failed("amount_not_supported");
  if (error instanceof Stripe.errors.StripeInvalidRequestError) return failed(error.code ?? "refused");
  throw error;
}

async function findFirst<T>(list: AsyncIterable<T>, fits: (one: T) => boolean): Promise<T | null> {
  for await (const one of list) if (fits(one)) return one;
  return null;
}

const UNKNOWN_CARD = { brand: "unknown", last4: "????" };

const cardOf = (method: Stripe.PaymentMethod | string | null) =>
  method && typeof method === "object" && method.card
    ? { brand: method.card.brand, last4: method.card.last4 }
    : UNKNOWN_CARD;

const methodOf = (method: Stripe.PaymentMethod): PaymentMethod => ({ id: method.id, ...cardOf(method) });

function toChargeResult(intent: Intent): ChargeResult {
  const known = {
    paymentId: intent.id,
    method: cardOf(intent.payment_method ?? intent.last_payment_error?.payment_method ?? null),
  };
  switch (intent.status) {
    case "succeeded":
      return { state: "succeeded", ...known, ...capturedOf(intent), feeMinor: feeOf(intent) };
    case "requires_action":
      return { state: "requires_action", ...known, url: intent.next_action?.redirect_to_url?.url ?? "" };
    case "canceled":
      return { state: "canceled", ...known };
    case "requires_payment_method":
      return { state: "declined", ...known, declineCode: declineCodeOf(intent) };
    default:
      return { state: "processing", ...known };
  }
}

const capturedOf = ({ amount_received: amount, currency, latest_charge: charge }: Intent) => ({
  amountMinor: fromStripe(amount, currency),
  currency: currency.toUpperCase(),
  isRefunded: typeof charge === "object" && charge?.refunded === true,
});

const declineCodeOf = ({ last_payment_error: error }: Intent) =>
  error?.decline_code ?? error?.code ?? "card_declined";

/** Null where Stripe settles in another currency: its fee is none of the charge's then. */
function feeOf({ latest_charge: charge, currency }: Intent): bigint | null {
  const booked = charge && typeof charge === "object" ? charge.balance_transaction : null;
  if (!booked || typeof booked !== "object" || booked.currency !== currency) return null;
  return fromStripe(booked.fee, currency);
}

function toRefundResult(refund: Stripe.Refund): RefundResult {
  const providerRefundId = refund.id;
  if (refund.status === "succeeded") return { state: "succeeded", providerRefundId };
  if (refund.status === "failed" || refund.status === "canceled")
    return { state: "failed", providerRefundId, failureCode: refund.failure_reason ?? refund.status };
  return { state: "processing", providerRefundId };
}

/** What is transferred is the seller's at once; their bank has it when their own schedule says. */
function toPayoutResult({ id, reversed, amount_reversed, currency }: Stripe.Transfer): PayoutResult {
  if (reversed) return { state: "returned", providerPayoutId: id };
  const reversedMinor = fromStripe(amount_reversed, currency);
  return { state: "completed", providerPayoutId: id, ...(reversedMinor > 0n && { reversedMinor }) };
}

/** What names none of our rows, or was never confirmed, is no charge of ours. */
function* listedCharge(intent: Intent) {
  const orderId = intent.metadata["order_id"];
  if (!orderId || intent.status === "requires_confirmation") return;
  const { state } = toChargeResult(intent);
  const succeeded = state === "succeeded";
  yield {
    ...{ paymentId: intent.id, orderId, state, createdAt: toDate(intent.created) },
    amountMinor: fromStripe(succeeded ? intent.amount_received : intent.amount, intent.currency),
    currency: intent.currency.toUpperCase(),
    feeMinor: feeOf(intent),
    isRefunded: capturedOf(intent).isRefunded,
  };
}

/** Of a charge of ours, whoever made it. */
function* listedRefund(refund: Stripe.Refund) {
  const intent = refund.payment_intent;
  const orderId = intent && typeof intent === "object" ? intent.metadata["order_id"] : undefined;
  if (!orderId) return;
  const outcome = toRefundResult(refund);
  yield {
    providerRefundId: refund.id,
    refundId: refund.metadata?.["refund_id"] ?? null,
    ...{ paymentId: (intent as Intent).id, orderId, state: outcome.state },
    failureCode: outcome.state === "failed" ? outcome.failureCode : null,
    amountMinor: fromStripe(refund.amount, refund.currency),
    currency: refund.currency.toUpperCase(),
    createdAt: toDate(refund.created),
  };
}

function* listedPayout(transfer: Stripe.Transfer) {
  const payoutId = transfer.metadata["payout_id"];
  if (!payoutId) return;
  yield {
    ...{ providerPayoutId: transfer.id, payoutId },
    state: transfer.reversed ? ("returned" as const) : ("completed" as const),
    amountMinor: fromStripe(transfer.amount, transfer.currency),
    reversedMinor: transfer.reversed ? 0n : fromStripe(transfer.amount_reversed, transfer.currency),
    currency: transfer.currency.toUpperCase(),
    createdAt: toDate(transfer.created),
  };
}

const toDate = (seconds: number) => new Date(seconds * 1000);

function disputeOf(dispute: Stripe.Dispute): Dispute | null {
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
    evidenceDueBy: answerByOf(dispute),
    createdAt: toDate(dispute.created),
  };
}

/** 0 where the bank hears nobody. */
function answerByOf({ evidence_details: { due_by } }: Stripe.Dispute): Date | null {
  return due_by ? new Date(due_by * 1000) : null;
}

/** None where Stripe settles in another currency, as with the fee of a charge. */
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
