import { type Insertable, sql } from "kysely";
import type { Queries, Tx } from "../db/database.ts";
import type { LedgerTransactions } from "../db/tables.gen.ts";
import type { Entry } from "./ledger.ts";

export async function insertTransaction(
  tx: Tx,
  transaction: Insertable<LedgerTransactions>,
  currency: string,
  entries: Entry[],
): Promise<void> {
  await tx.insertInto("ledger_transactions").values(transaction).execute();
  const rows = entries.map((entry, index) => ({
    transaction_id: transaction.id,
    position: index + 1,
    entry_count: transaction.entry_count,
    account: entry.account,
    owner_id: "ownerId" in entry ? entry.ownerId : null,
    currency,
    amount_minor: entry.amountMinor,
    order_id: entry.orderId ?? null,
    matures_at: "maturesAt" in entry ? entry.maturesAt : null,
  }));
  await tx.insertInto("ledger_entries").values(rows).execute();
}

/** As text, because a sum may have more digits than a number holds. */
interface Sums {
  currency: string;
  pending: string;
  available: string;
  inTransit: string;
  referrerPending: string;
  referrerAvailable: string;
}

/** All is summed from the index ledger_entries_owner, without the entries themselves. */
export async function sumsOf(db: Queries, ownerId: string, now: Date): Promise<Sums[]> {
  const { rows } = await sql<Sums>`
    select currency,
           coalesce(sum(amount_minor) filter (where matures_at > ${now}), 0)::text as pending,
           coalesce(sum(amount_minor) filter (where matures_at <= ${now}), 0)::text as available,
           coalesce(sum(amount_minor) filter (where account = 'in_transit'), 0)::text as "inTransit",
           coalesce(sum(amount_minor) filter (where account = 'referrer' and matures_at > ${now}), 0)::text as "referrerPending",
           coalesce(sum(amount_minor) filter (where account = 'referrer' and matures_at <= ${now}), 0)::text as "referrerAvailable"
      from ledger_entries where owner_id = ${ownerId} and account <> 'buyer_credit' group by currency order by currency`.execute(
    db,
  );
  return rows;
}
