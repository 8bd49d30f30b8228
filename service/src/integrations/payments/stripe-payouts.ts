import Stripe from "stripe";
import type { ListedPayout, Payments, PayoutRequest, PayoutResult } from "./payments.ts";
import { fromStripe } from "./stripe-amounts.ts";
import {
  createdSince,
  failOrThrow,
  idempotencyOptions,
  listWithUnknownResult,
  nullIfMissing,
  type StripeAccess,
  toDate,
  toStripeAmount,
  withUnknownResult,
} from "./stripe-client.ts";

type Payouts = Pick<
  Payments,
  "payOut" | "findPayout" | "findPayoutAccount" | "onboard" | "listPayouts" | "sharedPayoutAccount"
>;

/** Sellers are connected accounts; payouts are transfers to them. */
export const createPayouts = (access: StripeAccess): Payouts => ({
  payOut: (request) => withUnknownResult(() => transfer(access, request)),
  async findPayout(payoutId) {
    const { data } = await withUnknownResult(() =>
      access.stripe.transfers.list({ transfer_group: payoutId, limit: 1 }),
    );
    return data[0] ? toPayoutResult(data[0]) : null;
  },
  async findPayoutAccount(accountId) {
    const account = await withUnknownResult(() =>
      nullIfNotOurs(() => access.stripe.accounts.retrieve(accountId)),
    );
    return (
      account && { payoutsEnabled: account.payouts_enabled && account.capabilities?.transfers === "active" }
    );
  },
  onboard: (userId) => withUnknownResult(() => onboard(access, userId)),
  async *listPayouts(since) {
    for await (const one of listWithUnknownResult(access.stripe.transfers.list(createdSince(since)))) {
      const listed = toListedPayout(one);
      if (listed) yield listed;
    }
  },
  sharedPayoutAccount: null,
});

async function onboard(access: StripeAccess, userId: string): Promise<{ accountId: string; url: string }> {
  const accountId = await findOrCreateAccount(access, userId);
  const { url } = await access.stripe.accountLinks.create({
    account: accountId,
    type: "account_onboarding",
    return_url: access.returnUrl(),
    refresh_url: access.returnUrl(),
  });
  return { accountId, url };
}

/** The marketplace's own settings at Stripe say which countries and capabilities an account may have. */
async function findOrCreateAccount({ stripe, references }: StripeAccess, userId: string): Promise<string> {
  const ours = `${userId}:account`;
  const known = await references.find(ours);
  if (known) return known;
  const account = await stripe.accounts.create(
    { type: "express", metadata: { user_id: userId } },
    idempotencyOptions(userId, "account"),
  );
  return references.store(ours, account.id);
}

async function transfer(
  access: StripeAccess,
  { payoutId, destination, ...amount }: PayoutRequest,
): Promise<PayoutResult> {
  const key = await transferKeyOf(access, payoutId);
  try {
    const params = {
      amount: toStripeAmount(amount),
      currency: amount.currency.toLowerCase(),
      destination,
      transfer_group: payoutId,
      metadata: { payout_id: payoutId },
    };
    return toPayoutResult(await access.stripe.transfers.create(params, idempotencyOptions(key, "transfer")));
  } catch (error) {
    if (!isInsufficientBalance(error)) return failOrThrow(error, failedPayout);
    await access.references.store(refusalKeyOf(key), error.requestId ?? "unnamed");
    return { state: "waits", providerPayoutId: null, waitsFor: INSUFFICIENT_BALANCE };
  }
}

/**
 * The key of the next attempt at a payout. Under the same key Stripe repeats a refusal for a day or longer, also when the balance has
 * become enough; where we do not know what became of an attempt, its key stays.
 */
async function transferKeyOf({ references }: StripeAccess, payoutId: string): Promise<string> {
  const nth = (attempt: number) => (attempt === 1 ? payoutId : `${payoutId}:${attempt}`);
  let attempt = 1;
  while (await references.find(refusalKeyOf(nth(attempt)))) attempt++;
  return nth(attempt);
}

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

/** Of an account that is not there, or not connected to ours, Stripe says that we may not see it. */
async function nullIfNotOurs<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await nullIfMissing(ask);
  } catch (error) {
    if (error instanceof Stripe.errors.StripePermissionError) return null;
    throw error;
  }
}

/** What is transferred is the seller's at once; their bank has it when their own schedule says. */
function toPayoutResult({ id, reversed, amount_reversed, currency }: Stripe.Transfer): PayoutResult {
  if (reversed) return { state: "returned", providerPayoutId: id };
  const reversedMinor = fromStripe(amount_reversed, currency);
  return { state: "completed", providerPayoutId: id, ...(reversedMinor > 0n && { reversedMinor }) };
}

/** null: the transfer is no payout of this service. */
function toListedPayout(transfer: Stripe.Transfer): ListedPayout | null {
  const payoutId = transfer.metadata["payout_id"];
  if (!payoutId) return null;
  return {
    providerPayoutId: transfer.id,
    payoutId,
    state: transfer.reversed ? "returned" : "completed",
    amountMinor: fromStripe(transfer.amount, transfer.currency),
    reversedMinor: transfer.reversed ? 0n : fromStripe(transfer.amount_reversed, transfer.currency),
    currency: transfer.currency.toUpperCase(),
    createdAt: toDate(transfer.created),
  };
}
