import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

interface PurchaseScope {
  sellerId: string;
  productId?: string | undefined;
  from: Date;
  until: Date;
}

interface PurchaseCounts {
  purchases: number;
  ran: number;
  refunded: number;
  runs: number;
}

/**
 * Counts purchases between two times, what became of them, and the runs between these times. Each buyer's runs of a product become one
 * row first: a run after `from` is enough to decide about every purchase. These rows pass through arrays, because the planner otherwise
 * builds the hash table of the join from the purchases, which usually are more.
 */
export async function countPurchases(
  db: Queries,
  { sellerId, productId, from, until }: PurchaseScope,
): Promise<PurchaseCounts> {
  const only = (column: string) =>
    productId === undefined ? sql`` : sql`and ${sql.ref(column)} = ${productId}`;
  const { rows } = await sql<PurchaseCounts>`
    with ran as (
      select e.product_id, e.user_id, max(e.created_at) as last_at, count(*) filter (where e.created_at < ${until}) as runs
        from products p join executions e on e.product_id = p.id
       where p.author_id = ${sellerId} ${only("p.id")} and e.user_id <> ${sellerId} and e.created_at >= ${from}
       group by 1, 2),
    ran_arrays as (
      select array_agg(product_id) as products, array_agg(user_id) as users, array_agg(last_at) as ends,
             coalesce(sum(runs), 0)::bigint as runs
        from ran)
    select count(*) as purchases,
           count(*) filter (where ran.last_at >= o.completed_at) as ran,
           count(*) filter (where o.refunded_minor > 0) as refunded,
           (select runs from ran_arrays) as runs
      from orders o
      left join unnest((select products from ran_arrays), (select users from ran_arrays), (select ends from ran_arrays))
        as ran (product_id, user_id, last_at) on ran.product_id = o.product_id and ran.user_id = o.buyer_id
     where o.seller_id = ${sellerId} ${only("o.product_id")} and o.completed_at >= ${from} and o.completed_at < ${until}`.execute(
    db,
  );
  return firstOf(rows);
}
