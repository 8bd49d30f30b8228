import { sql } from "kysely";
import type pg from "pg";
import type { Tx } from "../db/database.ts";
import { each, SOLD_BY_QUARTERS } from "../ledger/sold.ts";
import { KEY, SUMS_LOCK } from "./sums-queries.ts";

/** Nothing is folded as long as the connection lives. */
export async function holdSums(client: pg.PoolClient): Promise<void> {
  await client.query("set statement_timeout = 0");
  await client.query("select pg_advisory_lock($1)", [SUMS_LOCK]);
}

export const allowTime = (tx: Tx) =>
  sql`select set_config('statement_timeout', '0', true), set_config('work_mem', '128MB', true)`.execute(tx);

const SUMS = each((name) => name);
const ADDED = each((name) => `sum_bigint(${name})`);

/** What the sums should be, in a table that the transaction takes with it: quarters by the books, days by these, months by those. */
export async function drawSums(tx: Tx): Promise<void> {
  await sql`create temp table due_sums (like sales_sums) on commit drop`.execute(tx);
  await sql`
    insert into due_sums (${KEY}, ${SUMS})
    select seller_id, scope, of_id, 'quarter', currency, starts_at, ${ADDED}
      from (${SOLD_BY_QUARTERS}) as sold group by 1, 2, 3, 5, 6`.execute(tx);
  for (const [part, whole] of [
    ["quarter", "day"],
    ["day", "month"],
  ])
    await sql`
      insert into due_sums (${KEY}, ${SUMS})
      select seller_id, scope, of_id, ${whole}, currency, date_trunc(${whole}, starts_at, 'UTC'), ${ADDED}
        from due_sums where grain = ${part} group by 1, 2, 3, 5, 6`.execute(tx);
  await sql`analyze due_sums`.execute(tx);
}

export const deleteMovements = (tx: Tx) => sql`delete from sales_movements`.execute(tx);

const SAME_CELL = sql`(s.seller_id, s.scope, s.of_id, s.grain, s.currency, s.starts_at)
  = (d.seller_id, d.scope, d.of_id, d.grain, d.currency, d.starts_at)`;

export async function deleteUnfoundedSums(tx: Tx): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from sales_sums s where not exists (select from due_sums d where ${SAME_CELL})`.execute(tx);
  return Number(numAffectedRows);
}

/** By seller and by what they are of, so that one span of a seller is read from few pages. */
export async function changeWrongSums(tx: Tx): Promise<number> {
  const { numAffectedRows } = await sql`
    insert into sales_sums (${KEY}, ${SUMS})
    select ${KEY}, ${SUMS} from due_sums d
     where not exists (select from sales_sums s
                        where ${SAME_CELL} and (${each((name) => `s.${name}`)}) = (${each((name) => `d.${name}`)}))
     order by ${KEY}
    on conflict (${KEY}) do update set ${each((name) => `${name} = excluded.${name}`)}`.execute(tx);
  return Number(numAffectedRows);
}

export async function countSums(tx: Tx): Promise<number> {
  const { rows } = await sql<{ sums: number }>`select count(*) as sums from due_sums`.execute(tx);
  return rows[0]!.sums;
}
