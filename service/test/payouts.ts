import type { PayoutStatus } from "@stoa/contract";
import { postTransaction } from "../src/commerce/ledger/ledger.ts";
import { syncPayoutFromProvider } from "../src/commerce/payouts/payout-submission.ts";
import {
  type Payments,
  PaymentUnknown,
  type PayoutRequest,
  type PayoutResult,
} from "../src/integrations/payments/payments.ts";
import type { Client, Market, Reply } from "./market.ts";

/** Killed in the middle of what it did: no error that anybody answers to. */
export class ProcessKilled extends Error {}

/** How a payout stands at the bank. */
export type BankState = Exclude<PayoutStatus, "pending">;

/** A provider of payouts that a test holds the strings of. */
export interface FakeBank {
  /** How the next payouts begin. */
  begins: BankState;
  /** Whether it is heard, or we die before or after it hears us. */
  trouble: "none" | "answers get lost" | "down" | "we die before" | "we die after";
  /** What it was asked to pay, by our id, and how that stands; asked twice, it pays once. */
  paid: Map<string, { request: PayoutRequest; state: BankState }>;
  /** Moves a payout and tells the service, as a provider's notice does. */
  moves(payoutId: string, state: BankState): Promise<void>;
}

const outcomeOf = (payoutId: string, state: BankState): PayoutResult =>
  state === "failed"
    ? { state, providerPayoutId: `po_${payoutId}`, failureCode: "account_closed" }
    : { state, providerPayoutId: `po_${payoutId}` };

/** Puts a bank of the test's in the place of the provider's payouts; charges stay the provider's. */
export function installFakeBank({ service: { ctx } }: Market): FakeBank {
  const bank: FakeBank = {
    begins: "completed",
    trouble: "none",
    paid: new Map(),
    async moves(payoutId, state) {
      bank.paid.get(payoutId)!.state = state;
      await syncPayoutFromProvider(ctx, payoutId);
    },
  };
  const heard = async <T>(question: () => T): Promise<T> => {
    if (bank.trouble === "down") throw new PaymentUnknown("nobody is there");
    if (bank.trouble === "we die before") throw new ProcessKilled();
    const answer = question();
    if (bank.trouble === "answers get lost") throw new PaymentUnknown("no answer");
    if (bank.trouble === "we die after") throw new ProcessKilled();
    return answer;
  };
  const find = (payoutId: string) => {
    const known = bank.paid.get(payoutId);
    return known ? outcomeOf(payoutId, known.state) : null;
  };
  const payouts: Pick<Payments, "payOut" | "findPayout" | "findPayoutAccount" | "sharedPayoutAccount"> = {
    findPayoutAccount: async () => ({ payoutsEnabled: true }),
    sharedPayoutAccount: "acct_test",
    payOut: (request) =>
      heard(() => {
        const { payoutId } = request;
        const known = bank.paid.get(payoutId) ?? { request, state: bank.begins };
        if (!isSame(known.request, request)) throw new Error("one key, two questions");
        bank.paid.set(payoutId, known);
        return outcomeOf(payoutId, known.state);
      }),
    findPayout: (payoutId) => heard(() => find(payoutId)),
  };
  Object.assign(ctx.integrations, { payments: { ...ctx.integrations.payments, ...payouts } });
  return bank;
}

const isSame = (one: PayoutRequest, other: PayoutRequest) =>
  one.amountMinor === other.amountMinor &&
  one.currency === other.currency &&
  one.destination === other.destination;

export interface EarningInput {
  amountMinor: bigint;
  currency?: string;
  /** At once unless told otherwise. */
  maturesAt?: Date;
  account?: "seller" | "referrer";
}

/** Books what a sale leaves a seller; below zero, what a refund or a fee takes. */
/** Asks for a payout, as a person must. */
export const requestPayout = async (
  market: Market,
  { userId }: Client,
  wish: object = {},
  headers?: Record<string, string>,
): Promise<Reply> => (await market.createSession(userId)).post("/v1/payouts", wish, headers);

export async function bookEarnings(market: Market, { userId }: Client, wish: EarningInput): Promise<void> {
  const { ctx } = market.service;
  market.skipLedgerCheck();
  const { amountMinor, currency = "USD", maturesAt = ctx.now(), account = "seller" } = wish;
  // Nothing matures before it is earned.
  const earnedAt = maturesAt < ctx.now() ? maturesAt : ctx.now();
  await ctx.db.transaction().execute((tx) =>
    postTransaction({ ...ctx, now: () => earnedAt }, tx, {
      kind: amountMinor > 0n ? "sale" : "refund",
      sourceId: ctx.newId(),
      currency,
      entries: [
        { account: "provider_clearing", amountMinor: -amountMinor },
        { account, ownerId: userId, amountMinor, maturesAt },
      ],
    }),
  );
}

/** What all entries of a currency sum to, whoever's they are. */
export async function ledgerSums({ query }: Market): Promise<Record<string, number>> {
  const { rows } = await query(
    "select currency, sum(amount_minor)::bigint as sum from ledger_entries group by currency",
  );
  return Object.fromEntries(rows.map(({ currency, sum }) => [currency, sum]));
}
