import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type Entry, type PostingKind, postTransaction } from "../ledger/ledger.ts";
import type { PayoutRow } from "./queries.ts";

export type PostablePayout = Pick<
  PayoutRow,
  "id" | "sellerId" | "amountMinor" | "commissionMinor" | "currency"
>;

/** The epoch, so that a process with a slow clock cannot see the debited amount as available. */
const IMMEDIATELY = new Date(0);

/** Credits the same accounts that the payout debited; the amount is available at once. */
const creditEntries = ({ sellerId: ownerId, amountMinor, commissionMinor }: PostablePayout): Entry[] => [
  { account: "referrer", ownerId, amountMinor: commissionMinor, maturesAt: IMMEDIATELY },
  { account: "seller", ownerId, amountMinor: amountMinor - commissionMinor, maturesAt: IMMEDIATELY },
];

const debitEntries = (payout: PostablePayout): Entry[] =>
  creditEntries(payout).map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));

const inTransitEntry = ({ sellerId }: PostablePayout, amountMinor: bigint): Entry => ({
  account: "in_transit",
  ownerId: sellerId,
  amountMinor,
});

const postPayout = (ctx: Context, tx: Tx, kind: PostingKind, payout: PostablePayout, entries: Entry[]) =>
  postTransaction(ctx, tx, { kind, sourceId: payout.id, currency: payout.currency, entries });

export const postPayoutCreated = (ctx: Context, tx: Tx, payout: PostablePayout) =>
  postPayout(ctx, tx, "payout", payout, [
    ...debitEntries(payout),
    inTransitEntry(payout, payout.amountMinor),
  ]);

/** The provider's balance for us falls. */
export const postPayoutCompleted = (ctx: Context, tx: Tx, payout: PostablePayout) =>
  postPayout(ctx, tx, "payout_completed", payout, [
    inTransitEntry(payout, -payout.amountMinor),
    { account: "provider_clearing", amountMinor: payout.amountMinor },
  ]);

export const postPayoutFailed = (ctx: Context, tx: Tx, payout: PostablePayout) =>
  postPayout(ctx, tx, "payout_failed", payout, [
    inTransitEntry(payout, -payout.amountMinor),
    ...creditEntries(payout),
  ]);

/** The bank returned the payout to our balance at the provider. */
export const postPayoutReturned = (ctx: Context, tx: Tx, payout: PostablePayout) =>
  postPayout(ctx, tx, "payout_returned", payout, [
    { account: "provider_clearing", amountMinor: -payout.amountMinor },
    ...creditEntries(payout),
  ]);
