import Stripe from "stripe";
import { PaymentUnknown } from "./payments.ts";
import { toStripe } from "./stripe-amounts.ts";
import type { StripeReferences } from "./stripe-references.ts";

const ANSWER_DEADLINE_MS = 20_000;
/** Stripe's own retries of unanswered requests, under the same idempotency key. */
const RETRIES = 2;

export interface StripeAccess {
  stripe: Stripe;
  references: StripeReferences;
  /** Where the buyer's bank sends the browser back to. */
  returnUrl: () => string;
}

/** `apiUrl`: another address than Stripe's own, for tests. */
export const createStripeClient = (secretKey: string, apiUrl: string | null): Stripe =>
  new Stripe(secretKey, {
    timeout: ANSWER_DEADLINE_MS,
    maxNetworkRetries: RETRIES,
    telemetry: false,
    appInfo: { name: "Stoa" },
    ...addressOf(apiUrl),
  });

function addressOf(apiUrl: string | null): Stripe.StripeConfig {
  if (!apiUrl) return {};
  const { protocol, hostname, port } = new URL(apiUrl);
  const scheme = protocol === "http:" ? "http" : "https";
  return { protocol: scheme, host: hostname, port: port || (scheme === "http" ? "80" : "443") };
}

/** The key contains our id and the step, so that a repeated request moves money once. */
export const idempotencyOptions = (ourId: string, step: string) => ({ idempotencyKey: `${ourId}:${step}` });

/** A call without a readable answer leaves the payment unknown; a refusal is thrown as it is. */
export async function withUnknownResult<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!isResultUnknown(error)) throw error;
    throw new PaymentUnknown("No answer of Stripe", { cause: error });
  }
}

/** The items of a list; the result of each page may be unknown. */
export async function* listWithUnknownResult<T>(list: AsyncIterable<T>): AsyncGenerator<T> {
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

export const isMissing = (error: unknown): boolean =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === "resource_missing";

export async function nullIfMissing<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}

/** null: the bank does not verify the card, or it belongs to another customer or was detached. */
export async function nullIfRefused<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof Stripe.errors.StripeCardError) return null;
    if (error instanceof Stripe.errors.StripeInvalidRequestError) return null;
    throw error;
  }
}

/** Stripe cannot express the amount in its units. */
class NoSuchAmount extends Error {}

export function toStripeAmount({ amountMinor, currency }: { amountMinor: bigint; currency: string }): number {
  const amount = toStripe(amountMinor, currency);
  if (amount === null) throw new NoSuchAmount(`Stripe has no ${amountMinor} minor units of ${currency}`);
  return amount;
}

/** Converts a permanent refusal; other errors are thrown. */
export function failOrThrow<T>(error: unknown, failed: (code: string) => T): T {
  if (error instanceof NoSuchAmount) return failed("amount_not_supported");
  if (error instanceof Stripe.errors.StripeInvalidRequestError) return failed(error.code ?? "refused");
  throw error;
}

/** The parameters of a list since a time. */
export const createdSince = (since: Date) => ({
  limit: 100,
  created: { gte: Math.floor(since.getTime() / 1000) },
});

export const toDate = (seconds: number) => new Date(seconds * 1000);
