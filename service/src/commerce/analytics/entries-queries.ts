import type { AnalyticsEntry } from "@stoa/contract";
import { type RawBuilder, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Paging } from "../../platform/db/paging.ts";

/** Which entries a sum has, and whether they count with the opposite sign. */
export interface FigureEntries {
  kinds: string[];
  accounts: string[];
  sign: 1 | -1;
}

interface EntryScope extends FigureEntries {
  sellerId: string;
  productId?: string | undefined;
  currency: string;
  from: Date;
  until: Date;
}

export interface EntryRow {
  transactionId: string;
  kind: AnalyticsEntry["kind"];
  account: AnalyticsEntry["account"];
  /** As text: it may exceed the safe integers of a number. */
  minor: string;
  occurredAt: Date;
  orderId: string;
  productId: string;
  productTitle: string;
}

/**
 * Transactions by their sources: an order, refund or dispute has the time of its transaction, and few orders have one of the latter. From
 * the transactions of these days, all sellers' would be read.
 */
function transactions({ sellerId, productId, kinds, from, until }: EntryScope) {
  const sold = sql`o.seller_id = ${sellerId} ${productId === undefined ? sql`` : sql`and o.product_id = ${productId}`}`;
  const columns = sql`t.id, t.kind, t.number, t.occurred_at, o.id as order_id, o.product_id, o.product_title`;
  const sources: Record<string, RawBuilder<unknown>> = {
    sale: sql`
      select ${columns} from orders o join ledger_transactions t on t.kind = 'sale' and t.source_id = o.id
       where ${sold} and o.completed_at >= ${from} and o.completed_at < ${until}`,
    refund: sql`
      select ${columns}
        from refunds r join orders o on o.id = r.order_id join ledger_transactions t on t.kind = 'refund' and t.source_id = r.id
       where ${sold} and r.completed_at >= ${from} and r.completed_at < ${until}`,
    dispute_opened: sql`
      select ${columns}
        from disputes d join orders o on o.id = d.order_id
        join ledger_transactions t on t.kind in ('dispute_opened', 'dispute_won', 'dispute_lost') and t.source_id = d.id
       where ${sold} and t.occurred_at >= ${from} and t.occurred_at < ${until}`,
  };
  const wanted = Object.keys(sources).filter((kind) => kinds.includes(kind));
  return sql.join(
    wanted.map((kind) => sources[kind]),
    sql` union all `,
  );
}

interface EntryPage {
  rows: EntryRow[];
  total: number;
  /** Of all pages, as text. */
  sumMinor: string;
}

/** The rows of a page with the number and the sum of all, from one reading. */
export async function listEntries(db: Queries, scope: EntryScope, paging: Paging): Promise<EntryPage> {
  const { rows } = await sql<EntryRow & { total: number; sumMinor: string }>`
    with matching as materialized (
      select t.*, e.position, e.account, ${scope.sign} * e.amount_minor as minor
        from (${transactions(scope)}) as t join ledger_entries e on e.transaction_id = t.id
       where e.account = any (${scope.accounts}) and e.currency = ${scope.currency})
    select whole.total, whole.sum as "sumMinor", page.id as "transactionId", page.kind, page.account, page.minor::text,
           page.occurred_at as "occurredAt", page.order_id as "orderId", page.product_id as "productId",
           page.product_title as "productTitle"
      from (select count(*) as total, coalesce(sum(minor), 0)::text as sum from matching) as whole
      left join (select * from matching order by occurred_at desc, number desc, position
                  limit ${paging.limit} offset ${offsetOf(paging)}) as page on true
     order by page.occurred_at desc, page.number desc, page.position`.execute(db);
  const { total, sumMinor } = firstOf(rows);
  // Behind the last page, there is one row without an entry.
  return { rows: rows.filter(({ transactionId }) => transactionId !== null), total, sumMinor };
}
