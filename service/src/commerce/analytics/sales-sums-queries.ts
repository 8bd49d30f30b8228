import { type Insertable, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import { compileOnce } from "../../platform/db/compile-once.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import type { SalesMovements } from "../../platform/db/tables.gen.ts";
import { eachColumn } from "../ledger/sales-sums.ts";

export const insertMovement = compileOnce((tx, movement: Insertable<SalesMovements>) =>
  tx.insertInto("salesMovements").values(movement),
);

/** The primary key of sales_sums. Inserts in another order would touch pages all over its index. */
export const KEY = sql`seller_id, scope, of_id, grain, currency, starts_at`;

/** An arbitrary key of an advisory lock: one process at a time rolls up or rebuilds the sums. */
export const SUMS_LOCK = 7_200_412;

/**
 * Moves pending movements into the sums in one statement, so that a reader counts each movement once. Returns the number of moved rows; 0
 * if another process has the lock. The ids are an array: if the statistics have seen the table without rows, PostgreSQL would read the ids of
 * a join once for each row.
 */
export async function rollUpMovements(tx: Tx, limit: number): Promise<number> {
  const { rows: locks } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(${SUMS_LOCK}) as locked`.execute(tx);
  if (!firstOf(locks).locked) return 0;
  const { rows } = await sql<{ rolledUp: number }>`
    with moved as (
      delete from sales_movements
       where id = any (array(select id from sales_movements order by id limit ${limit})) returning *),
    added as (
      insert into sales_sums as s (${KEY}, ${eachColumn((name) => name)})
      select m.seller_id, c.scope, c.of_id, c.grain, m.currency, c.starts_at, ${eachColumn((name) => `sum_bigint(m.${name})`)}
        from moved m
       cross join lateral sales_cells(m.seller_id, m.product_id, m.referrer_id, m.moved_at) as c
       group by 1, 2, 3, 4, 5, 6
      on conflict (${KEY}) do update
        set ${eachColumn((name) => `${name} = s.${name} + excluded.${name}`)})
    select count(*) as "rolledUp" from moved`.execute(tx);
  return firstOf(rows).rolledUp;
}

export async function countMovements(db: Queries): Promise<{ count: number; oldestAt: Date | null }> {
  const { rows } = await sql<{ count: number; oldestAt: Date | null }>`
    select count(*) as count, min(moved_at) as "oldestAt" from sales_movements`.execute(db);
  return firstOf(rows);
}
