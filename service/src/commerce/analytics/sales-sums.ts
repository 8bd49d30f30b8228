import type { Context } from "../../core/context.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { Account, Entry, Posting } from "../ledger/ledger.ts";
import { countMovements, insertMovement, rollUpMovements } from "./sales-sums-queries.ts";

export interface SoldOrder {
  sellerId: string;
  productId: string;
  referrerId: string | null;
  currency: string;
  discountMinor: bigint;
}

/**
 * Inserts a movement in the transaction that posts to the ledger, so that sums equal the ledger at every moment. Inserting a new row
 * avoids lock waits between sales.
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

/** Short transactions: sales must not wait for row locks of the roll-up. */
const BATCH_SIZE = 10_000;

/** Rolling up does not change any answer of the API. */
export async function rollUpSales({ db }: Pick<Context, "db">, atOnce = BATCH_SIZE): Promise<void> {
  let rolledUp: number;
  do rolledUp = await db.transaction().execute((tx) => rollUpMovements(tx, atOnce));
  while (rolledUp === atOnce);
}

/** More than a few minutes of age mean that no worker rolls movements up. */
export const countPendingMovements = (db: Queries) => countMovements(db);
