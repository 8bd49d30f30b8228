import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { insertTransaction } from "./queries.ts";

/** docs/guides/money.md explains each account. Four of them have owners. */
export const accounts = [
  "provider_clearing",
  "platform_revenue",
  "processor_fees",
  "tax_payable",
  "dispute_hold",
  "dispute_losses",
  "bank",
  "seller",
  "referrer",
  "in_transit",
  "buyer_credit",
] as const;
export type Account = (typeof accounts)[number];

export type PostingKind =
  | "sale"
  | "refund"
  | "refund_returned"
  | "refund_settled"
  | "dispute_opened"
  | "dispute_won"
  | "dispute_lost"
  | "subscription"
  | "subscription_dispute_lost"
  | "payout"
  | "payout_completed"
  | "payout_failed"
  | "payout_returned";

/** A negative amount debits the account. */
export type Entry = { amountMinor: bigint; orderId?: string | undefined } & (
  | { account: Exclude<Account, "seller" | "referrer" | "in_transit" | "buyer_credit"> }
  | { account: "in_transit" | "buyer_credit"; ownerId: string }
  /** `maturesAt`: the start of availability for payouts; without it, immediately. */
  | { account: "seller" | "referrer"; ownerId: string; maturesAt?: Date }
);

export interface Posting {
  kind: PostingKind;
  /** The order, refund, dispute, payout or payment; posted once for each kind. */
  sourceId: string;
  currency: string;
  entries: Entry[];
  /** The time of the event in the source's row; defaults to now. */
  at?: Date;
}

/**
 * Posts in the caller's transaction and omits entries of zero. Throws if the entries do not sum to zero, or if the source is posted twice:
 * both are bugs.
 */
export async function postTransaction(
  ctx: Context,
  tx: Tx,
  { kind, sourceId, currency, entries, at = ctx.now() }: Posting,
): Promise<void> {
  const moved = entries.filter(({ amountMinor }) => amountMinor !== 0n);
  const sum = moved.reduce((total, { amountMinor }) => total + amountMinor, 0n);
  if (sum !== 0n) throw new RangeError(`The entries of ${kind} ${sourceId} sum to ${sum} ${currency}`);
  if (moved.length === 0) return;
  const transaction = {
    id: ctx.newId(),
    kind,
    sourceId,
    entryCount: moved.length,
    occurredAt: at,
  };
  await insertTransaction(tx, transaction, currency, moved);
}
