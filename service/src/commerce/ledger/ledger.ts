import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { insertTransaction } from "./queries.ts";

/** The accounts; docs/guides/money.md tells what each is for. On four of them people have money of their own. */
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

/** What one account gains, or gives where it is below zero. */
export type Entry = { amountMinor: bigint; orderId?: string | undefined } & (
  | { account: Exclude<Account, "seller" | "referrer" | "in_transit" | "buyer_credit"> }
  | { account: "in_transit" | "buyer_credit"; ownerId: string }
  /** `maturesAt`: from when the owner may be paid out for it; without, at once. */
  | { account: "seller" | "referrer"; ownerId: string; maturesAt?: Date }
);

export interface Posting {
  kind: PostingKind;
  /** The order, refund, dispute, payout or payment that it is about: each is booked once for a kind. */
  sourceId: string;
  currency: string;
  entries: Entry[];
  /** When it happened, as the row says that it is about; without, now. */
  at?: Date;
}

/**
 * Books what happened, in the caller's transaction. Entries of nothing are left out; without any other, nothing is booked. Entries
 * that do not sum to zero are a mistake of ours, and so is a source that is booked twice: both throw.
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
