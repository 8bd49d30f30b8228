import { type Insertable, sql } from "kysely";
import { compileOnce } from "../../platform/db/compile-once.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { LedgerEntries, LedgerTransactions, LedgerVerifications } from "../../platform/db/tables.gen.ts";
import type { Entry } from "./ledger.ts";
import { reservedAmounts } from "./reserved-amounts.ts";

export async function insertTransaction(
  tx: Tx,
  transaction: Insertable<LedgerTransactions>,
  currency: string,
  entries: Entry[],
): Promise<void> {
  const rows = entries.map((entry, index) => ({
    transactionId: transaction.id,
    position: index + 1,
    entryCount: transaction.entryCount,
    account: entry.account,
    ownerId: "ownerId" in entry ? entry.ownerId : null,
    currency,
    amountMinor: entry.amountMinor,
    orderId: entry.orderId ?? null,
    maturesAt: entryMaturity(entry, transaction),
  }));
  await insertTransactionRows(tx, { ...transaction, rows });
}

/** One statement: foreign keys are checked at its end. */
const insertTransactionRows = compileOnce(
  (tx, { rows, ...transaction }: Insertable<LedgerTransactions> & { rows: Insertable<LedgerEntries>[] }) =>
    tx
      .with("written", (db) => db.insertInto("ledgerTransactions").values(transaction))
      .insertInto("ledgerEntries")
      .values(rows),
);

const entryMaturity = (entry: Entry, { occurredAt }: Insertable<LedgerTransactions>) =>
  entry.account === "seller" || entry.account === "referrer" ? (entry.maturesAt ?? occurredAt) : null;

/** As text: a sum may exceed the safe integers of a number. */
interface Sums {
  currency: string;
  pending: string;
  matured: string;
  reserved: string;
  inTransit: string;
  referrerPending: string;
  referrerMatured: string;
  referrerReserved: string;
}

/**
 * One statement, so that a refund that succeeds concurrently is either reserved or booked. The sums use only the index
 * ledger_entries_owner.
 */
export async function sumBalances(db: Queries, ownerId: string, now: Date): Promise<Sums[]> {
  const { rows } = await sql<Sums>`
    with booked as (
      select currency,
             sum(amount_minor) filter (where matures_at > ${now}) as pending,
             sum(amount_minor) filter (where matures_at <= ${now}) as matured,
             sum(amount_minor) filter (where account = 'in_transit') as in_transit,
             sum(amount_minor) filter (where account = 'referrer' and matures_at > ${now}) as referrer_pending,
             sum(amount_minor) filter (where account = 'referrer' and matures_at <= ${now}) as referrer_matured
        from ledger_entries where owner_id = ${ownerId} and account <> 'buyer_credit' group by currency),
    reserved as (${reservedAmounts(ownerId, now)})
    select currency, coalesce(pending, 0)::text as pending, coalesce(matured, 0)::text as matured,
           coalesce(reserved, 0)::text as reserved, coalesce(in_transit, 0)::text as "inTransit",
           coalesce(referrer_pending, 0)::text as "referrerPending",
           coalesce(referrer_matured, 0)::text as "referrerMatured",
           coalesce(referrer_reserved, 0)::text as "referrerReserved"
      from booked full join reserved using (currency) order by currency`.execute(db);
  return rows;
}

export const insertVerification = (db: Queries, verification: Insertable<LedgerVerifications>) =>
  db.insertInto("ledgerVerifications").values(verification).execute();

export const findLastVerificationRow = (db: Queries) =>
  db
    .selectFrom("ledgerVerifications")
    .select(["begunAt", "endedAt", "problems"])
    .orderBy("begunAt", "desc")
    .limit(1)
    .executeTakeFirst();
