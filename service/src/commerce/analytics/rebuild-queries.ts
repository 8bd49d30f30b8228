import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import {
  DAY_OF,
  eachColumn,
  HOUR_OF,
  MONTH_OF,
  SALES_BY_QUARTER_HOUR,
  YEAR_OF,
} from "../ledger/sales-sums.ts";
import { KEY } from "./sales-sums-queries.ts";

const SUMS = eachColumn((name) => name);
const SUM_COLUMNS = eachColumn((name) => `sum_bigint(${name})`);

/** Computes quarters of an hour from the ledger, and longer sums from the shorter ones. */
export async function computeDueSums(tx: Tx): Promise<void> {
  await sql`create temp table due_sums (like sales_sums) on commit drop`.execute(tx);
  await sql`
    insert into due_sums (${KEY}, ${SUMS})
    select seller_id, scope, of_id, 'quarter', currency, starts_at, ${SUM_COLUMNS}
      from (${SALES_BY_QUARTER_HOUR}) as sold group by 1, 2, 3, 5, 6`.execute(tx);
  await sql`analyze due_sums`.execute(tx);
  await sql`
    insert into due_sums (${KEY}, ${SUMS})
    select seller_id, scope, of_id, hour_grain(starts_at), currency, ${HOUR_OF}, ${SUM_COLUMNS}
      from due_sums where grain = 'quarter' and scope = 'all' group by 1, 2, 3, 4, 5, 6`.execute(tx);
  for (const [part, whole, startsAt] of [
    ["quarter", "day", DAY_OF],
    ["day", "month", MONTH_OF],
    ["month", "year", YEAR_OF],
  ] as const) {
    await sql`
      insert into due_sums (${KEY}, ${SUMS})
      select seller_id, scope, of_id, ${whole}, currency, ${startsAt}, ${SUM_COLUMNS}
        from due_sums where grain = ${part} group by 1, 2, 3, 5, 6`.execute(tx);
    await sql`analyze due_sums`.execute(tx);
  }
}

export const deleteMovements = (tx: Tx) => sql`delete from sales_movements`.execute(tx);

const SAME_CELL = sql`(s.seller_id, s.scope, s.of_id, s.grain, s.currency, s.starts_at)
  = (d.seller_id, d.scope, d.of_id, d.grain, d.currency, d.starts_at)`;

/** Also deletes sums with wrong amounts, which `insertMissingSums` writes again. Returns how many have no counterpart in the ledger. */
export async function deleteWrongSums(tx: Tx): Promise<number> {
  const { rows } = await sql<{ unfounded: number }>`
    with s as (
      delete from sales_sums s
       where not exists (select from due_sums d
                          where ${SAME_CELL} and (${eachColumn((name) => `s.${name}`)}) = (${eachColumn((name) => `d.${name}`)}))
      returning *)
    select count(*) as unfounded from s where not exists (select from due_sums d where ${SAME_CELL})`.execute(
    tx,
  );
  return firstOf(rows).unfounded;
}

/**
 * The order by key places the sums of one seller on few pages. SUMS_LOCK excludes other writers; checking each index for conflicts would
 * take 50 % longer.
 */
export async function insertMissingSums(tx: Tx): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into sales_sums (${KEY}, ${SUMS})
    select ${KEY}, ${SUMS} from due_sums d where not exists (select from sales_sums s where ${SAME_CELL}) order by ${KEY}`.execute(
    tx,
  );
  return Number(numAffectedRows);
}

export async function countSums(tx: Tx): Promise<number> {
  const { rows } = await sql<{ sums: number }>`select count(*) as sums from due_sums`.execute(tx);
  return firstOf(rows).sums;
}
