import Stripe from "stripe";
import type {
  ListedPayout,
  Payments,
  PayoutAccount,
  PayoutRequest,
  PayoutRequirement,
  PayoutResult,
} from "./payments.ts";
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
    return account && toPayoutAccount(account);
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

function toPayoutAccount({ payouts_enabled, capabilities, requirements }: Stripe.Account): PayoutAccount {
  const transfers = capabilities?.transfers ?? "unrequested";
  const payoutsEnabled = payouts_enabled && transfers === "active";
  return {
    payoutsEnabled,
    disabledReason: requirements?.disabled_reason ?? (payoutsEnabled ? null : `transfers.${transfers}`),
    requirements: requirements ? toRequirements(requirements) : [],
    dueBy: requirements?.current_deadline ? toDate(requirements.current_deadline) : null,
  };
}

/** What is past due is also in the list of what is due. */
function toRequirements({
  currently_due,
  past_due,
  pending_verification,
  errors,
}: Stripe.Account.Requirements): PayoutRequirement[] {
  const late = new Set(past_due);
  const problems = new Map(errors?.map(({ requirement, reason }) => [requirement, reason]));
  const toRequirement = (name: string, status: PayoutRequirement["status"]) => ({
    name,
    status,
    problem: problems.get(name) ?? null,
  });
  const due = [...new Set([...(past_due ?? []), ...(currently_due ?? [])])];
  return [
    ...due.map((name) => toRequirement(name, late.has(name) ? "past_due" : "due")),
    ...(pending_verification ?? []).map((name) => toRequirement(name, "in_review")),
  ];
}

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

/** The marketplace's settings at Stripe decide the countries and capabilities of accounts. */
async function findOrCreateAccount({ stripe, references }: StripeAccess, userId: string): Promise<string> {
  const reference = `${userId}:account`;
  const existing = await references.find(reference);
  if (existing) return existing;
  const account = await stripe.accounts.create(
    { type: "express", metadata: { user_id: userId } },
    idempotencyOptions(userId, "account"),
  );
  return references.store(reference, account.id);
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
 * The key of the next attempt. Stripe repeats a refusal under its key for a day or longer, even if the balance suffices by then. An
 * attempt with an unknown result keeps its key.
 */
async function transferKeyOf({ references }: StripeAccess, payoutId: string): Promise<string> {
  const nth = (attempt: number) => (attempt === 1 ? payoutId : `${payoutId}:${attempt}`);
  let attempt = 1;
  while (await references.find(refusalKeyOf(nth(attempt)))) attempt++;
  return nth(attempt);
}

/** Stripe's error code when the marketplace's balance does not cover a transfer. */
const INSUFFICIENT_BALANCE = "balance_insufficient";

const isInsufficientBalance = (error: unknown): error is Stripe.errors.StripeInvalidRequestError =>
  error instanceof Stripe.errors.StripeInvalidRequestError && error.code === INSUFFICIENT_BALANCE;

/** The reference that marks a refused key as used up. */
const refusalKeyOf = (key: string) => `${key}:refused`;

const failedPayout = (failureCode: string): PayoutResult => ({
  state: "failed",
  providerPayoutId: null,
  failureCode,
});

/** For unknown accounts and those of others, Stripe returns a permission error. */
async function nullIfNotOurs<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await nullIfMissing(ask);
  } catch (error) {
    if (error instanceof Stripe.errors.StripePermissionError) return null;
    throw error;
  }
}

/** A transfer is the seller's at once; their bank gets it by their own schedule. */
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
