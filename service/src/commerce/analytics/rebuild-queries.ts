import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { DAY_OF, eachColumn, MONTH_OF, SALES_BY_QUARTER_HOUR } from "../ledger/sales-sums.ts";
import { KEY } from "./sales-sums-queries.ts";

export const liftTimeouts = (tx: Tx) =>
  sql`select set_config('statement_timeout', '0', true), set_config('work_mem', '128MB', true)`.execute(tx);

const SUMS = eachColumn((name) => name);
const SUM_COLUMNS = eachColumn((name) => `sum_bigint(${name})`);

/** What the sums should be, in a table that the transaction takes with it: quarters by the ledger, days by these, months by those. */
export async function computeDueSums(tx: Tx): Promise<void> {
  await sql`create temp table due_sums (like sales_sums) on commit drop`.execute(tx);
  await sql`
    insert into due_sums (${KEY}, ${SUMS})
    select seller_id, scope, of_id, 'quarter', currency, starts_at, ${SUM_COLUMNS}
      from (${SALES_BY_QUARTER_HOUR}) as sold group by 1, 2, 3, 5, 6`.execute(tx);
  await sql`analyze due_sums`.execute(tx);
  for (const [part, whole, startsAt] of [
    ["quarter", "day", DAY_OF],
    ["day", "month", MONTH_OF],
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

/** Wrong ones too, which come back as they should be. Answers how many there were of which the ledger knows nothing. */
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
 * By seller and by what they are of, so that one span of a seller is read from few pages. Nobody else writes sums meanwhile: to ask each
 * index for conflicts first would take half as long again.
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
