import type { PayoutItem } from "@stoa/contract";
import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import { toBigintAmounts } from "../../platform/db/bigint-amounts.ts";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { PayoutRow } from "./queries.ts";

export interface ItemRow {
  kind: PayoutItem["kind"];
  account: "seller" | "referrer";
  amountMinor: bigint;
  orderId: string | null;
  productId: string | null;
  productTitle: string | null;
  occurredAt: Date;
  at: Date;
}

/** What a statement covers: an owner's entries in one currency, and the payout before, which has a smaller id. */
export type StatementScope = Pick<PayoutRow, "id" | "sellerId" | "currency" | "createdAt">;

/** An entry counts when it is booked and mature; a payout that came back at once, after it was created. The debits of payouts are not among them: those are the payouts themselves. */
const entriesOf = ({ sellerId, currency }: StatementScope) => sql`
  select t.kind, t.number, t.occurred_at, e.account, e.amount_minor, e.order_id, e.position,
         greatest(t.occurred_at, e.matures_at, returned.created_at + interval '1 microsecond') as at
    from ledger_entries e join ledger_transactions t on t.id = e.transaction_id
    left join payouts returned on returned.id = t.source_id and t.kind in ('payout_failed', 'payout_returned')
   where e.owner_id = ${sellerId} and e.currency = ${currency} and e.account in ('seller', 'referrer')
     and t.kind <> 'payout'`;

const earlierPayouts = ({ id, sellerId, currency }: StatementScope) => sql`
  select amount_minor, created_at from payouts
   where seller_id = ${sellerId} and currency = ${currency} and id < ${id}`;

const itemsOf = (scope: StatementScope) => sql`
  select * from (${entriesOf(scope)}) e
   where at <= ${scope.createdAt}
     and at > coalesce((select max(created_at) from (${earlierPayouts(scope)}) p), '-infinity')`;

export async function listItemRows(
  db: Queries,
  scope: StatementScope,
  paging: Paging,
): Promise<Page<ItemRow>> {
  const { rows } = await sql<Omit<ItemRow, "amountMinor"> & { amountMinor: number; all: number }>`
    select i.kind, i.account, i.amount_minor as "amountMinor", i.order_id as "orderId",
           o.product_id as "productId", o.product_title as "productTitle",
           i.occurred_at as "occurredAt", i.at, (count(*) over ())::int as "all"
      from (${itemsOf(scope)}) i left join orders o on o.id = i.order_id
     order by i.at, i.number, i.position limit ${paging.limit} offset ${offsetOf(paging)}`.execute(db);
  return { items: rows.map(({ all: _, ...row }) => toBigintAmounts(row)), total: rows[0]?.all ?? 0 };
}

/** An entry and its place in the order of a statement. */
export interface StatementRow extends ItemRow {
  place: { at: string; number: string; position: number };
}

/** The entries after that place, at most `limit`. Each call reads the whole history of the seller, so that batches are large. */
export async function listItemsAfter(
  db: Queries,
  scope: StatementScope,
  after: StatementRow["place"] | null,
  limit: number,
): Promise<StatementRow[]> {
  const rest = after
    ? sql`where (i.at, i.number, i.position) > (${after.at}::timestamptz, ${after.number}::bigint, ${after.position}::int)`
    : sql``;
  // As text: a Date has no microseconds.
  const { rows } = await sql<Omit<StatementRow, "amountMinor"> & { amountMinor: number }>`
    select i.kind, i.account, i.amount_minor as "amountMinor", i.order_id as "orderId",
           o.product_id as "productId", o.product_title as "productTitle", i.occurred_at as "occurredAt", i.at,
           jsonb_build_object('at', i.at::text, 'number', i.number::text, 'position', i.position) as place
      from (${itemsOf(scope)}) i left join orders o on o.id = i.order_id ${rest}
     order by i.at, i.number, i.position limit ${limit}`.execute(db);
  return rows.map((row) => toBigintAmounts(row));
}

export interface StatementSums {
  openingMinor: bigint;
  addedMinor: bigint;
}

export async function sumStatement(db: Queries, scope: StatementScope): Promise<StatementSums> {
  const { rows } = await sql<{ opening: string; added: string }>`
    with entries as (${entriesOf(scope)}),
    earlier as (select coalesce(max(created_at), '-infinity') as last, coalesce(sum(amount_minor), 0) as paid
                  from (${earlierPayouts(scope)}) p)
    select (coalesce(sum(e.amount_minor) filter (where e.at <= earlier.last), 0) - earlier.paid)::text as opening,
           coalesce(sum(e.amount_minor) filter (where e.at > earlier.last), 0)::text as added
      from earlier left join entries e on e.at <= ${scope.createdAt}
     group by earlier.last, earlier.paid`.execute(db);
  const { opening, added } = firstOf(rows);
  return { openingMinor: BigInt(opening), addedMinor: BigInt(added) };
}

export interface ItemSumRow {
  kind: PayoutItem["kind"];
  account: "seller" | "referrer";
  productTitle: string | null;
  amountMinor: bigint;
  entries: number;
}

/** By product, the largest sum first. */
export async function sumItemsByProduct(db: Queries, scope: StatementScope): Promise<ItemSumRow[]> {
  const { rows } = await sql<Omit<ItemSumRow, "amountMinor"> & { amountMinor: number }>`
    select i.kind, i.account, max(o.product_title) as "productTitle", sum(i.amount_minor)::bigint as "amountMinor",
           count(*)::int as entries
      from (${itemsOf(scope)}) i left join orders o on o.id = i.order_id
     group by i.kind, i.account, o.product_id
     order by sum(i.amount_minor) desc, i.kind, o.product_id`.execute(db);
  return rows.map((row) => toBigintAmounts(row));
}
