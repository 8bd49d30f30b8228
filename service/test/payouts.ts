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

/** The process died in the middle: no code handles this error. */
export class ProcessKilled extends Error {}

/** The state of a payout at the bank. */
export type BankState = Exclude<PayoutStatus, "pending">;

/** A payout provider that the test controls. */
export interface FakeBank {
  /** The initial state of the next payouts. */
  begins: BankState;
  /** Lost answers, an unreachable bank, or our death before or after the request. */
  trouble: "none" | "answers get lost" | "down" | "we die before" | "we die after";
  /** Payouts by our id, one per id. */
  paid: Map<string, { request: PayoutRequest; state: BankState }>;
  /** Moves a payout and sends the service an event. */
  moves(payoutId: string, state: BankState): Promise<void>;
}

const outcomeOf = (payoutId: string, state: BankState): PayoutResult =>
  state === "failed"
    ? { state, providerPayoutId: `po_${payoutId}`, failureCode: "account_closed" }
    : { state, providerPayoutId: `po_${payoutId}` };

/** Replaces the provider's payouts; charges stay the provider's. */
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
  const withTrouble = async <T>(question: () => T): Promise<T> => {
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
    findPayoutAccount: async () => ({
      ...{ payoutsEnabled: true, disabledReason: null, requirements: [], dueBy: null },
    }),
    sharedPayoutAccount: "acct_test",
    payOut: (request) =>
      withTrouble(() => {
        const { payoutId } = request;
        const known = bank.paid.get(payoutId) ?? { request, state: bank.begins };
        if (!isSame(known.request, request)) throw new Error("one key, two questions");
        bank.paid.set(payoutId, known);
        return outcomeOf(payoutId, known.state);
      }),
    findPayout: (payoutId) => withTrouble(() => find(payoutId)),
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
  /** Default: at once. */
  maturesAt?: Date;
  account?: "seller" | "referrer";
}

/** Requests a payout in a session. */
export const requestPayout = async (
  market: Market,
  { userId }: Client,
  input: object = {},
  headers?: Record<string, string>,
): Promise<Reply> => (await market.createSession(userId)).post("/v1/payouts", input, headers);

export async function bookEarnings(market: Market, { userId }: Client, input: EarningInput): Promise<void> {
  const { ctx } = market.service;
  market.skipLedgerCheck();
  const { amountMinor, currency = "USD", maturesAt = ctx.now(), account = "seller" } = input;
  // Money matures at the earliest when it is earned.
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

/** The sum of all entries by currency. */
export async function ledgerSums({ query }: Market): Promise<Record<string, number>> {
  const { rows } = await query(
    "select currency, sum(amount_minor)::bigint as sum from ledger_entries group by currency",
  );
  return Object.fromEntries(rows.map(({ currency, sum }) => [currency, sum]));
}
