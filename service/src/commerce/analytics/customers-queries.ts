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

export async function countCustomers(
  db: Queries,
  { sellerId, from, until }: Omit<CustomerScope, "currency">,
): Promise<CustomerCounts[]> {
  const { rows } = await sql<CustomerCounts>`
    select currency, count(*) as ever,
           count(*) filter (where inside > 0) as customers,
           count(*) filter (where inside = purchases) as new,
           count(*) filter (where inside > 0 and purchases > 1) as repeat,
           coalesce(sum(gross), 0) as gross, sum(gross_ever) as "grossEver"
      from (select currency, count(*) as purchases, ${revenue} as gross_ever,
                   count(*) filter (where completed_at >= ${from}) as inside,
                   ${revenue} filter (where completed_at >= ${from}) as gross
              from orders where seller_id = ${sellerId} and completed_at < ${until}
             group by currency, buyer_id) as customer
     group by currency order by currency`.execute(db);
  return rows;
}

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

export interface Retained {
  /** 0: before the range. */
  first: number;
  bucket: number;
  customers: number;
}

/** Counts, for each pair of buckets, the customers who first bought in one and bought in the other, which can be the same. */
export async function countRetained(
  db: Queries,
  bought: CustomerScope,
  beginnings: Date[],
): Promise<Retained[]> {
  const { rows } = await sql<Retained>`
    select first, bucket, count(*) as customers
      from (${inBuckets(bought, beginnings)}) as bought where bucket > 0 group by first, bucket`.execute(db);
  return rows;
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

interface CustomerPage {
  limit: number;
  /** By the amount spent, highest first, or by id. */
  by: "spent" | "id";
  after?: string | null;
}

/** Amounts cover the range; `firstAt` may be earlier. */
export async function listCustomers(
  db: Queries,
  { sellerId, currency, from, until }: CustomerScope,
  { limit, by, after = null }: CustomerPage,
): Promise<CustomerRow[]> {
  const order = by === "spent" ? sql`spent desc, buyer_id` : sql`buyer_id`;
  const { rows } = await sql<CustomerRow>`
    select c.buyer_id as id, u.name, c.purchases, c.spent, c.first_at, c.last_at
      from (select buyer_id, count(*) filter (where completed_at >= ${from}) as purchases,
                   ${revenue} filter (where completed_at >= ${from}) as spent,
                   min(completed_at) as first_at, max(completed_at) as last_at
              from orders
             where seller_id = ${sellerId} and currency = ${currency} and completed_at < ${until}
               and ${after === null ? sql`true` : sql`buyer_id > ${after}`}
             group by buyer_id having max(completed_at) >= ${from}
             order by ${order} limit ${limit}) as c
      join users u on u.id = c.buyer_id order by ${order}`.execute(db);
  return rows;
}
