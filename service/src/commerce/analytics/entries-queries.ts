import type { AnalyticsEntry } from "@stoa/contract";
import { sql } from "kysely";
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

/** Each kind is found by its source, since few of a seller's orders were refunded or disputed, and a sale has the time of its order. */
function sources({ sellerId, productId, from, until }: EntryScope) {
  const sold = sql`o.seller_id = ${sellerId} ${productId === undefined ? sql`` : sql`and o.product_id = ${productId}`}`;
  const order = sql`o.id as order_id, o.product_id, o.product_title`;
  return sql`
    select array['sale'] as kinds, o.id as source_id, ${order}
      from orders o where ${sold} and o.completed_at >= ${from} and o.completed_at < ${until}
    union all
    select array['refund'], r.id, ${order} from orders o join refunds r on r.order_id = o.id where ${sold}
    union all
    select array['dispute_opened', 'dispute_won', 'dispute_lost'], d.id, ${order}
      from orders o join disputes d on d.order_id = o.id where ${sold}`;
}

const matchingEntries = (scope: EntryScope) => sql`
  from (${sources(scope)}) as s
  join ledger_transactions t on t.kind = any (s.kinds) and t.source_id = s.source_id
  join ledger_entries e on e.transaction_id = t.id
 where t.kind = any (${scope.kinds}) and t.occurred_at >= ${scope.from} and t.occurred_at < ${scope.until}
   and e.account = any (${scope.accounts}) and e.currency = ${scope.currency}`;

export async function sumEntries(
  db: Queries,
  scope: EntryScope,
): Promise<{ total: number; sumMinor: string }> {
  const { rows } = await sql<{ total: number; sumMinor: string }>`
    select count(*) as total, coalesce(sum(${scope.sign} * e.amount_minor), 0)::text as "sumMinor"
    ${matchingEntries(scope)}`.execute(db);
  return firstOf(rows);
}

export async function listEntries(db: Queries, scope: EntryScope, paging: Paging): Promise<EntryRow[]> {
  const { rows } = await sql<EntryRow>`
    select t.id as "transactionId", t.kind, e.account, (${scope.sign} * e.amount_minor)::text as minor,
           t.occurred_at as "occurredAt", s.order_id as "orderId", s.product_id as "productId",
           s.product_title as "productTitle"
    ${matchingEntries(scope)}
     order by t.occurred_at desc, t.number desc, e.position
     limit ${paging.limit} offset ${offsetOf(paging)}`.execute(db);
  return rows;
}
