import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type Entry, type PostingKind, post } from "../ledger/ledger.ts";
import type { PayoutRow } from "./queries.ts";

export type BookedPayout = Pick<
  PayoutRow,
  "id" | "sellerId" | "amountMinor" | "commissionMinor" | "currency"
>;

/** Before every clock: a process that is behind the one which drew a payout must not take its amount for there still. */
const AT_ONCE = new Date(0);

/** What the seller gains on the accounts from which the payout was drawn; it can be paid out at once. */
const givenBack = ({ sellerId: ownerId, amountMinor, commissionMinor }: BookedPayout): Entry[] => [
  { account: "referrer", ownerId, amountMinor: commissionMinor, maturesAt: AT_ONCE },
  { account: "seller", ownerId, amountMinor: amountMinor - commissionMinor, maturesAt: AT_ONCE },
];

const drawn = (payout: BookedPayout): Entry[] =>
  givenBack(payout).map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));

const inTransit = ({ sellerId }: BookedPayout, amountMinor: bigint): Entry => ({
  account: "in_transit",
  ownerId: sellerId,
  amountMinor,
});

const book = (ctx: Context, tx: Tx, kind: PostingKind, payout: BookedPayout, entries: Entry[]) =>
  post(ctx, tx, { kind, sourceId: payout.id, currency: payout.currency, entries });

export const bookMade = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout", payout, [...drawn(payout), inTransit(payout, payout.amountMinor)]);

/** The provider holds it for us no longer. */
export const bookCompleted = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout_completed", payout, [
    inTransit(payout, -payout.amountMinor),
    { account: "provider_clearing", amountMinor: payout.amountMinor },
  ]);

export const bookFailed = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout_failed", payout, [inTransit(payout, -payout.amountMinor), ...givenBack(payout)]);

/** The bank sent it back to the provider, who holds it for us again. */
export const bookReturned = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout_returned", payout, [
    { account: "provider_clearing", amountMinor: -payout.amountMinor },
    ...givenBack(payout),
  ]);
