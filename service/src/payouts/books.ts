import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { type Entry, type PostingKind, post } from "../ledger/ledger.ts";
import type { PayoutRow } from "./queries.ts";

export type BookedPayout = Pick<
  PayoutRow,
  "id" | "sellerId" | "amountMinor" | "commissionMinor" | "currency"
>;

/** What the seller gains on the accounts from which the payout was drawn; it can be paid out at once. */
const givenBack = (ctx: Context, payout: BookedPayout): Entry[] => {
  const owner = { ownerId: payout.sellerId, maturesAt: ctx.now() };
  return [
    { ...owner, account: "referrer", amountMinor: payout.commissionMinor },
    { ...owner, account: "seller", amountMinor: payout.amountMinor - payout.commissionMinor },
  ];
};

const drawn = (ctx: Context, payout: BookedPayout): Entry[] =>
  givenBack(ctx, payout).map((entry) => ({ ...entry, amountMinor: -entry.amountMinor }));

const inTransit = ({ sellerId }: BookedPayout, amountMinor: bigint): Entry => ({
  account: "in_transit",
  ownerId: sellerId,
  amountMinor,
});

const book = (ctx: Context, tx: Tx, kind: PostingKind, payout: BookedPayout, entries: Entry[]) =>
  post(ctx, tx, { kind, sourceId: payout.id, currency: payout.currency, entries });

export const bookMade = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout", payout, [...drawn(ctx, payout), inTransit(payout, payout.amountMinor)]);

/** The provider holds it for us no longer. */
export const bookCompleted = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout_completed", payout, [
    inTransit(payout, -payout.amountMinor),
    { account: "provider_clearing", amountMinor: payout.amountMinor },
  ]);

export const bookFailed = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout_failed", payout, [inTransit(payout, -payout.amountMinor), ...givenBack(ctx, payout)]);

/** The bank sent it back to the provider, who holds it for us again. */
export const bookReturned = (ctx: Context, tx: Tx, payout: BookedPayout) =>
  book(ctx, tx, "payout_returned", payout, [
    { account: "provider_clearing", amountMinor: -payout.amountMinor },
    ...givenBack(ctx, payout),
  ]);
