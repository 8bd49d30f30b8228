import type { Insertable } from "kysely";
import type { Tx } from "../db/database.ts";
import type { LedgerTransactions } from "../db/tables.gen.ts";
import type { Entry } from "./ledger.ts";

export async function insertTransaction(
  tx: Tx,
  transaction: Insertable<LedgerTransactions>,
  currency: string,
  entries: Entry[],
): Promise<void> {
  await tx.insertInto("ledger_transactions").values(transaction).execute();
  const rows = entries.map((entry, position) => ({
    transaction_id: transaction.id,
    position,
    account: entry.account,
    owner_id: "ownerId" in entry ? entry.ownerId : null,
    currency,
    amount_minor: Number(entry.amountMinor),
    order_id: entry.orderId ?? null,
    matures_at: "maturesAt" in entry ? entry.maturesAt : null,
  }));
  await tx.insertInto("ledger_entries").values(rows).execute();
}
