import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

export interface CustomerScope {
  sellerId: string;
  currency: string;
  from: Date;
  until: Date;
}

const revenue = sql.raw("sum(total_minor - tax_minor)");

// All queries here use only the index orders_customers, in its order.

export interface CustomerReport {
  counts: CustomerCounts[];
  retained: Retained[];
  /** By the amount spent in the range, highest first. */
  top: CustomerRow[];
}

/** Sums are text: they may exceed the safe integers of a number. */
export interface CustomerCounts {
  currency: string;
  /** Buyers up to the end of the range. */
  ever: number;
  customers: number;
  new: number;
  /** Customers with two or more purchases up to the end of the range. */
  repeat: number;
  gross: string;
  grossEver: string;
}

/** The customers who first bought in one bucket and bought in the other, which can be the same. Buckets count from 1. */
export interface Retained {
  /** 0: before the range. */
  first: number;
  bucket: number;
  customers: number;
}

export interface CustomerRow {
  id: string;
  name: string;
  purchases: number;
  /** Without tax, in minor units. */
  spent: string;
  firstAt: Date;
  lastAt: Date;
}

/** In one statement, because it reads all orders of the seller up to the end of the range. */
export async function readCustomers(
  db: Queries,
  { sellerId, currency, from, until }: CustomerScope,
  { beginnings, top }: { beginnings: Date[]; top: number },
): Promise<CustomerReport> {
  const { rows } = await sql<Record<keyof CustomerReport, unknown>>`
    with customer as materialized (
      select currency, buyer_id, count(*) as purchases, ${revenue} as gross_ever,
             count(*) filter (where completed_at >= ${from}) as inside,
             ${revenue} filter (where completed_at >= ${from}) as gross,
             min(completed_at) as first_at, max(completed_at) as last_at,
             array_agg(completed_at) filter (where completed_at >= ${from} and currency = ${currency}) as moments
        from orders where seller_id = ${sellerId} and completed_at < ${until}
       group by currency, buyer_id),
    counted as (
      select currency, count(*) as ever,
             count(*) filter (where inside > 0) as customers,
             count(*) filter (where inside = purchases) as new,
             count(*) filter (where inside > 0 and purchases > 1) as repeat,
             coalesce(sum(gross), 0)::text as gross, sum(gross_ever)::text as "grossEver"
        from customer group by currency),
    bought as (
      select distinct buyer_id, width_bucket(first_at, ${beginnings}::timestamptz[]) as first,
             width_bucket(moment, ${beginnings}::timestamptz[]) as bucket
        from customer, unnest(moments) as moment),
    spent as (
      select buyer_id as id, inside as purchases, gross, first_at as "firstAt", last_at as "lastAt"
        from customer where currency = ${currency} and inside > 0 order by gross desc, buyer_id limit ${top})
    select (select json_agg(c order by c.currency) from counted as c) as counts,
           (select json_agg(r) from (select first, bucket, count(*) as customers from bought group by 1, 2) as r) as retained,
           (select json_agg(t order by t.place) from (
              select row_number() over (order by s.gross desc, s.id) as place, s.id, u.name, s.purchases, s.gross::text as spent, s."firstAt", s."lastAt"
                from spent as s join users as u on u.id = s.id) as t) as top`.execute(db);
  const [report] = rows as [
    { counts: CustomerCounts[] | null; retained: Retained[] | null; top: TopRow[] | null },
  ];
  return {
    counts: report.counts ?? [],
    retained: report.retained ?? [],
    top: (report.top ?? []).map((row) => ({
      ...row,
      firstAt: new Date(row.firstAt),
      lastAt: new Date(row.lastAt),
    })),
  };
}

/** As JSON has times. */
type TopRow = Omit<CustomerRow, "firstAt" | "lastAt"> & Record<"firstAt" | "lastAt", string>;

/** One row for each customer and bucket, with the customer's first bucket. Buckets count from 1; bucket 0 is the time before the range. */
const inBuckets = ({ sellerId, currency, until }: CustomerScope, beginnings: Date[]) => sql`
  select bucket, min(bucket) over (partition by buyer_id order by bucket) as first
    from (select buyer_id, width_bucket(completed_at, ${beginnings}::timestamptz[]) as bucket
            from orders where seller_id = ${sellerId} and currency = ${currency} and completed_at < ${until}) as purchase
   group by buyer_id, bucket`;

export interface Buyers {
  bucket: number;
  new: number;
  returning: number;
}

export async function countBuyers(db: Queries, bought: CustomerScope, beginnings: Date[]): Promise<Buyers[]> {
  const { rows } = await sql<Buyers>`
    select bucket, count(*) filter (where bucket = first) as new, count(*) filter (where bucket > first) as returning
      from (${inBuckets(bought, beginnings)}) as bought where bucket > 0 group by bucket`.execute(db);
  return rows;
}

interface CustomerPage {
  limit: number;
  after: string | null;
}

/** In the order of their ids. Amounts cover the range; `firstAt` may be earlier. */
export async function listCustomers(
  db: Queries,
  { sellerId, currency, from, until }: CustomerScope,
  { limit, after }: CustomerPage,
): Promise<CustomerRow[]> {
  const { rows } = await sql<CustomerRow>`
    select c.buyer_id as id, u.name, c.purchases, c.spent, c.first_at, c.last_at
      from (select buyer_id, count(*) filter (where completed_at >= ${from}) as purchases,
                   ${revenue} filter (where completed_at >= ${from}) as spent,
                   min(completed_at) as first_at, max(completed_at) as last_at
              from orders
             where seller_id = ${sellerId} and currency = ${currency} and completed_at < ${until}
               and ${after === null ? sql`true` : sql`buyer_id > ${after}`}
             group by buyer_id having max(completed_at) >= ${from}
             order by buyer_id limit ${limit}) as c
      join users u on u.id = c.buyer_id order by c.buyer_id`.execute(db);
  return rows;
}
