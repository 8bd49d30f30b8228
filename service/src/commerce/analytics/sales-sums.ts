import type { Context } from "../../core/context.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { Account, Entry, Posting } from "../ledger/ledger.ts";
import { countMovements, insertMovement, rollUpMovements } from "./sales-sums-queries.ts";

/** An order whose money moves. */
export interface SoldOrder {
  sellerId: string;
  productId: string;
  referrerId: string | null;
  currency: string;
  discountMinor: bigint;
}

/**
 * Adds a booking of an order to the sums of its seller, in the transaction that books it: the sums hold what the ledger holds, at
 * every moment. It writes one row of its own, so that no two transactions wait for each other.
 */
export async function recordMovement(
  ctx: Context,
  tx: Tx,
  order: SoldOrder,
  { kind, entries, at }: Pick<Posting, "kind" | "entries"> & { at: Date },
): Promise<void> {
  const moved = sharesIn(entries);
  const charged = moved.net + moved.commissions + moved.fees;
  if (kind !== "sale" && Object.values(moved).every((minor) => minor === 0n)) return;
  await insertMovement(tx, {
    id: ctx.newId(),
    sellerId: order.sellerId,
    productId: order.productId,
    referrerId: order.referrerId,
    currency: order.currency,
    movedAt: at,
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
const BATCH_SIZE = 10_000;

/** The job moves pending rows into the sums. Answers do not change by it. */
export async function rollUpSales({ db }: Pick<Context, "db">, atOnce = BATCH_SIZE): Promise<void> {
  let rolledUp: number;
  do rolledUp = await db.transaction().execute((tx) => rollUpMovements(tx, atOnce));
  while (rolledUp === atOnce);
}

/** How many bookings wait for that, and since when: more than a few minutes say that no worker rolls them up. */
export const countPendingMovements = (db: Queries) => countMovements(db);
