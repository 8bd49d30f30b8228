import { type RawBuilder, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import {
  DAY_OF,
  eachColumn,
  HOUR_OF,
  MONTH_OF,
  SALES_BY_QUARTER_HOUR,
  type saleSums,
  verifiedSums,
  YEAR_OF,
} from "./sales-sums.ts";
import { type Found, listFirst } from "./verification-queries.ts";

export interface MisdatedTransaction {
  kind: string;
  transactionId: string;
  occurredAt: Date;
  /** When the order was completed, the refund succeeded or was returned, or the dispute was opened or closed. */
  rightAt: Date;
}

/** Transactions whose time differs from their source's: ledger and receipts would disagree about a day. */
export const listMisdatedTransactions = (tx: Tx) =>
  listFirst(
    tx,
    sql<MisdatedTransaction>`
      select * from (
        select t.kind, t.id as "transactionId", t.occurred_at as "occurredAt",
               case t.kind when 'sale' then o.completed_at
                           when 'refund' then r.completed_at
                           when 'refund_returned' then r.returned_at
                           when 'refund_settled' then r.settled_at
                           when 'dispute_opened' then d.opened_at
                           else d.closed_at end as "rightAt"
          from ledger_transactions t
          left join orders o on t.kind = 'sale' and o.id = t.source_id
          left join refunds r on t.kind in ('refund', 'refund_returned', 'refund_settled') and r.id = t.source_id
          left join disputes d on t.kind like 'dispute%' and d.id = t.source_id
         where t.kind in ('sale', 'refund', 'refund_returned', 'refund_settled', 'dispute_opened', 'dispute_won', 'dispute_lost')) as bookings
       where "occurredAt" <> "rightAt"`,
  );

export interface WrongSum extends Cell {
  grain: Grain;
  found: Amounts;
  /** The expected amount less the found one; `received`: the gross amount by receipts less the found one. */
  lacks: Record<(typeof verifiedSums)[number], string>;
}

type Grain = "quarter" | "hour" | "day" | "month" | "year";
type Amounts = Record<(typeof saleSums)[number], string>;

interface Cell {
  sellerId: string;
  startsAt: Date;
  scope: "all" | "product" | "referrer";
  ofId: string;
  currency: string;
}

const CELL = sql`seller_id, starts_at, scope, of_id, currency`;
const DIFFERENCES = eachColumn((name) => `sum_bigint(${name})::text as ${name}`, verifiedSums);
const DIFFERS = sql.raw(verifiedSums.map((name) => `sum_bigint(${name}) <> 0`).join(" or "));

const storedSums = (grain: Grain) =>
  grain === "hour"
    ? sql`select * from sales_cells_now where grain like 'hour-%'`
    : sql`select * from sales_cells_now where grain = ${grain}`;

/**
 * `due` has the cell's columns, the sums and `received`. One aggregation of expected less found amounts needs half the memory of joining
 * two.
 */
async function listWrongSumsOf(tx: Tx, grain: Grain, due: RawBuilder<unknown>): Promise<Found<WrongSum>[]> {
  const wrong = await listFirst(
    tx,
    sql<Cell & WrongSum["lacks"]>`
      select seller_id, starts_at, scope, of_id, currency, ${DIFFERENCES}
        from (select ${CELL}, ${eachColumn((name) => name, verifiedSums)} from (${due}) as due
              union all
              select ${CELL}, ${eachColumn((name) => `-${name}`)}, -gross from (${storedSums(grain)}) as found) as both_sides
       group by ${CELL} having ${DIFFERS}`,
  );
  const wrongSums: Found<WrongSum>[] = [];
  for (const { sellerId, startsAt, scope, ofId, currency, total, ...lacks } of wrong) {
    const cell = { sellerId, startsAt, scope, ofId, currency };
    wrongSums.push({ ...cell, grain, total, lacks, found: await findSums(tx, grain, cell) });
  }
  return wrongSums;
}

async function findSums(
  tx: Tx,
  grain: Grain,
  { sellerId, startsAt, scope, ofId, currency }: Cell,
): Promise<Amounts> {
  const { rows } = await sql<Amounts>`
    select ${eachColumn((name) => `sum_bigint(${name})::text as ${name}`)} from (${storedSums(grain)}) as found
     where (${CELL}) = (${sellerId}, ${startsAt}, ${scope}, ${ofId}, ${currency})`.execute(tx);
  return firstOf(rows);
}

/** Compares quarters of an hour with the ledger and the receipts. */
export const listWrongSums = (tx: Tx) => listWrongSumsOf(tx, "quarter", SALES_BY_QUARTER_HOUR);

/** Compares longer sums with the shorter ones that they contain. */
const listWrongTotals = (
  tx: Tx,
  whole: Exclude<Grain, "quarter">,
  startsAt: RawBuilder<unknown>,
  parts: RawBuilder<unknown>,
) =>
  listWrongSumsOf(
    tx,
    whole,
    sql`select seller_id, scope, of_id, currency, ${startsAt} as starts_at, ${eachColumn((name) => name)}, gross as received
          from (${parts}) as parts`,
  );

/** Only all sales of a seller have sums by hour. */
export const listWrongHours = (tx: Tx) =>
  listWrongTotals(tx, "hour", HOUR_OF, sql`${storedSums("quarter")} and scope = 'all'`);
export const listWrongDays = (tx: Tx) => listWrongTotals(tx, "day", DAY_OF, storedSums("quarter"));
export const listWrongMonths = (tx: Tx) => listWrongTotals(tx, "month", MONTH_OF, storedSums("day"));
export const listWrongYears = (tx: Tx) => listWrongTotals(tx, "year", YEAR_OF, storedSums("month"));
