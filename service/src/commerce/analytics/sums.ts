import type { Context } from "../../core/context.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { Account, Entry, Posting } from "../ledger/ledger.ts";
import { countMovements, foldMovements, insertMovement } from "./sums-queries.ts";

/** An order whose money moves. */
export interface Sold {
  sellerId: string;
  productId: string;
  referrerId: string | null;
  currency: string;
  discountMinor: bigint;
}

/**
 * Adds a booking of an order to the sums of its seller, in the transaction that books it: the sums hold what the books hold, at
 * every moment. It writes one row of its own, so that no two transactions wait for each other.
 */
export async function tally(
  ctx: Context,
  tx: Tx,
  order: Sold,
  { kind, entries, at }: Pick<Posting, "kind" | "entries"> & { at: Date },
): Promise<void> {
  const moved = sharesIn(entries);
  const charged = moved.net + moved.commissions + moved.fees;
  if (kind !== "sale" && Object.values(moved).every((minor) => minor === 0n)) return;
  await insertMovement(tx, {
    id: ctx.newId(),
    seller_id: order.sellerId,
    product_id: order.productId,
    referrer_id: order.referrerId,
    currency: order.currency,
    moved_at: at,
    ...moved,
    ...(kind === "sale" && { sales: 1, gross: charged, discounts: order.discountMinor }),
    ...(kind === "refund" && { refunds: -charged }),
    ...(kind.startsWith("dispute_") && { disputes: -charged }),
  });
}

/** What the entries move of each who shares in an order. */
function sharesIn(entries: Entry[]) {
  const sum = (account: Account) =>
    entries.reduce((total, entry) => (entry.account === account ? total + entry.amountMinor : total), 0n);
  return {
    net: sum("seller"),
    commissions: sum("referrer"),
    fees: sum("platform_revenue"),
    tax: sum("tax_payable"),
  };
}

/** Of one transaction, so that sales wait for nothing that it holds. */
const FOLDED_AT_ONCE = 10_000;

/** The job: what moved since the last round becomes part of the sums. No answer changes by it, whoever asks meanwhile. */
export async function foldSales({ db }: Pick<Context, "db">, atOnce = FOLDED_AT_ONCE): Promise<void> {
  let folded: number;
  do folded = await db.transaction().execute((tx) => foldMovements(tx, atOnce));
  while (folded === atOnce);
}

/** How many bookings wait for that, and since when: more than a few minutes say that no worker folds. */
export const countWaiting = (db: Queries) => countMovements(db);
