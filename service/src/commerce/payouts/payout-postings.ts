import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type Entry, type PostingKind, postTransaction } from "../ledger/ledger.ts";
import type { PayoutRow } from "./queries.ts";

export type PostablePayout = Pick<
  PayoutRow,
  "id" | "sellerId" | "amountMinor" | "commissionMinor" | "currency"
>;

/** Before every clock: a process that is behind the one which drew a payout must not take its amount for there still. */
const IMMEDIATELY = new Date(0);

/** What the seller gains on the accounts from which the payout was drawn; it can be paid out at once. */
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

/** The provider holds it for us no longer. */
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

/** The bank sent it back to the provider, who holds it for us again. */
export const postPayoutReturned = (ctx: Context, tx: Tx, payout: PostablePayout) =>
  postPayout(ctx, tx, "payout_returned", payout, [
    { account: "provider_clearing", amountMinor: -payout.amountMinor },
    ...creditEntries(payout),
  ]);
