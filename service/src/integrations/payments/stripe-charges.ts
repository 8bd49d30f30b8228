import Stripe from "stripe";
import type { ChargeRequest, ChargeResult, ListedCharge, Payments } from "./payments.ts";
import { fromStripe } from "./stripe-amounts.ts";
import {
  createdSince,
  failOrThrow,
  idempotencyOptions,
  isMissing,
  listWithUnknownResult,
  type StripeAccess,
  toDate,
  toStripeAmount,
  withUnknownResult,
} from "./stripe-client.ts";
import { cardOf, findOrCreateCustomer, UNKNOWN_CARD } from "./stripe-methods.ts";

type Intent = Stripe.PaymentIntent;

const EXPANDED = ["payment_method", "latest_charge.balance_transaction"];
const EXPANDED_LIST = ["data.latest_charge.balance_transaction"];
const CANCELABLE = new Set<Intent["status"]>([
  "requires_payment_method",
  "requires_confirmation",
  "requires_action",
  "processing",
]);

/**
 * A charge is a PaymentIntent that is created, stored, and only then confirmed. If the response to the confirmation is lost, the
 * stored id finds the intent and its state.
 */
export const createCharges = (
  access: StripeAccess,
): Pick<Payments, "charge" | "findCharge" | "cancelCharge" | "listCharges"> => ({
  charge: (request) => charge(access, request),
  async findCharge(orderId) {
    const intent = await withUnknownResult(() => findIntent(access, orderId));
    // An intent that was never confirmed charged nobody, and only this service can confirm it.
    return intent && intent.status !== "requires_confirmation" ? toChargeResult(intent) : null;
  },
  async cancelCharge(orderId) {
    const intent = await withUnknownResult(() => findIntent(access, orderId));
    if (!intent) return null;
    if (!CANCELABLE.has(intent.status)) return toChargeResult(intent);
    return toChargeResult(await withUnknownResult(() => cancel(access, orderId, intent.id)));
  },
  async *listCharges(since) {
    const intents = access.stripe.paymentIntents.list({ ...createdSince(since), expand: EXPANDED_LIST });
    for await (const intent of listWithUnknownResult(intents)) {
      const listed = toListedCharge(intent);
      if (listed) yield listed;
    }
  },
});

async function charge(access: StripeAccess, request: ChargeRequest): Promise<ChargeResult> {
  try {
    const intent = await withUnknownResult(async () =>
      confirm(access, await findOrCreateIntent(access, request), request),
    );
    return toChargeResult(intent);
  } catch (error) {
    if (isMissing(error)) return { state: "unknown_method" };
    const { orderId: paymentId } = request;
    return failOrThrow(error, (declineCode) => ({
      state: "declined",
      declineCode,
      paymentId,
      method: UNKNOWN_CARD,
    }));
  }
}

async function findOrCreateIntent(access: StripeAccess, request: ChargeRequest): Promise<string> {
  const { stripe, references } = access;
  const existing = await references.find(request.orderId);
  if (existing) return existing;
  const intent = await stripe.paymentIntents.create(
    {
      amount: toStripeAmount(request),
      currency: request.currency.toLowerCase(),
      customer: await findOrCreateCustomer(access, request.userId),
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

const readIntent = ({ stripe }: StripeAccess, id: string) =>
  stripe.paymentIntents.retrieve(id, { expand: EXPANDED });

/** The intent of one of our ids; null: none was created. */
async function findIntent(access: StripeAccess, orderId: string): Promise<Intent | null> {
  const id = await access.references.find(orderId);
  return id === null ? null : readIntent(access, id);
}

/** The page that shows how the payment went. */
const returnUrlOf = (access: StripeAccess, orderId: string): string =>
  `${access.returnUrl()}${orderId.startsWith("ord_") ? `/orders/${orderId}` : "/account/plan"}`;

async function confirm(access: StripeAccess, id: string, { orderId, buyer }: ChargeRequest): Promise<Intent> {
  const intent = await readIntent(access, id);
  if (intent.status !== "requires_confirmation") return intent;
  const presence = buyer === "present" ? { return_url: returnUrlOf(access, orderId) } : { off_session: true };
  try {
    const options = idempotencyOptions(orderId, "confirm");
    return await access.stripe.paymentIntents.confirm(id, { ...presence, expand: EXPANDED }, options);
  } catch (error) {
    // A decline is an error; the intent contains its details.
    if (error instanceof Stripe.errors.StripeCardError) return readIntent(access, id);
    throw error;
  }
}

const cancel = ({ stripe }: StripeAccess, orderId: string, intentId: string) =>
  stripe.paymentIntents.cancel(intentId, { expand: EXPANDED }, idempotencyOptions(orderId, "cancel"));

function toChargeResult(intent: Intent): ChargeResult {
  const common = {
    paymentId: intent.id,
    method: cardOf(intent.payment_method ?? intent.last_payment_error?.payment_method ?? null),
  };
  switch (intent.status) {
    case "succeeded":
      return { state: "succeeded", ...common, ...capturedOf(intent), feeMinor: feeOf(intent) };
    case "requires_action":
      return { state: "requires_action", ...common, url: intent.next_action?.redirect_to_url?.url ?? "" };
    case "canceled":
      return { state: "canceled", ...common };
    case "requires_payment_method":
      return { state: "declined", ...common, declineCode: declineCodeOf(intent) };
    default:
      return { state: "processing", ...common };
  }
}

const capturedOf = ({ amount_received: amount, currency, latest_charge: charge }: Intent) => ({
  amountMinor: fromStripe(amount, currency),
  currency: currency.toUpperCase(),
  isRefunded: typeof charge === "object" && charge?.refunded === true,
});

const declineCodeOf = ({ last_payment_error: error }: Intent) =>
  error?.decline_code ?? error?.code ?? "card_declined";

/** null: Stripe settles in another currency, so the fee is not in that of the charge. */
function feeOf({ latest_charge: charge, currency }: Intent): bigint | null {
  const booked = charge && typeof charge === "object" ? charge.balance_transaction : null;
  if (!booked || typeof booked !== "object" || booked.currency !== currency) return null;
  return fromStripe(booked.fee, currency);
}

/** null: an intent of another service, or one that was never confirmed. */
function toListedCharge(intent: Intent): ListedCharge | null {
  const orderId = intent.metadata["order_id"];
  if (!orderId || intent.status === "requires_confirmation") return null;
  const { state } = toChargeResult(intent);
  const amount = state === "succeeded" ? intent.amount_received : intent.amount;
  return {
    paymentId: intent.id,
    orderId,
    state,
    createdAt: toDate(intent.created),
    amountMinor: fromStripe(amount, intent.currency),
    currency: intent.currency.toUpperCase(),
    feeMinor: feeOf(intent),
    isRefunded: capturedOf(intent).isRefunded,
  };
}
