import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../../platform/db/database.ts";
import { DAY_OF, each, MONTH_OF, proved, SOLD_BY_QUARTERS, type saleSums } from "./sold.ts";
import { type Found, firstOf } from "./verify-queries.ts";

export interface Misdated {
  kind: string;
  transactionId: string;
  occurredAt: Date;
  /** When its order was completed, its refund succeeded or came back, its dispute was opened or closed. */
  rightAt: Date;
}

/** Bookings of orders that are of another moment than what they are about: books and receipts would disagree on a day. */
export const listMisdated = (tx: Tx) =>
  firstOf(
    tx,
    sql<Misdated>`
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
  /** What it is, by column. */
  found: Amounts;
  /** By how much each column is below what it should be; `received`, by how much gross is below what the receipts say. */
  lacks: Record<(typeof proved)[number], string>;
}

type Grain = "quarter" | "day" | "month";
type Amounts = Record<(typeof saleSums)[number], string>;

/** What a sum is of, besides its grain. */
interface Cell {
  sellerId: string;
  startsAt: Date;
  scope: "all" | "product" | "referrer";
  ofId: string;
  currency: string;
}

const CELL = sql`seller_id, starts_at, scope, of_id, currency`;
const LACKS = each((name) => `sum_bigint(${name})::text as ${name}`, proved);
const DIFFERS = sql.raw(proved.map((name) => `sum_bigint(${name}) <> 0`).join(" or "));

const found = (grain: Grain) => sql`select * from sales_cells_now where grain = ${grain}`;

/**
 * Rows of `due` are of the cell and of the sums, and say what is `received`. What is there is taken from them: one set of sums for each
 * cell is half of what two to be compared would be, and the largest that a proof keeps.
 */
async function wrongSums(tx: Tx, grain: Grain, due: RawBuilder<unknown>): Promise<Found<WrongSum>[]> {
  const wrong = await firstOf(
    tx,
    sql<Cell & WrongSum["lacks"]>`
      select seller_id as "sellerId", starts_at as "startsAt", scope, of_id as "ofId", currency, ${LACKS}
        from (select ${CELL}, ${each((name) => name, proved)} from (${due}) as due
              union all
              select ${CELL}, ${each((name) => `-${name}`)}, -gross from (${found(grain)}) as found) as both_sides
       group by ${CELL} having ${DIFFERS}`,
  );
  const told: Found<WrongSum>[] = [];
  for (const { sellerId, startsAt, scope, ofId, currency, total, ...lacks } of wrong) {
    const cell = { sellerId, startsAt, scope, ofId, currency };
    told.push({ ...cell, grain, total, lacks, found: await findSums(tx, grain, cell) });
  }
  return told;
}

async function findSums(
  tx: Tx,
  grain: Grain,
  { sellerId, startsAt, scope, ofId, currency }: Cell,
): Promise<Amounts> {
  const { rows } = await sql<Amounts>`
    select ${each((name) => `sum_bigint(${name})::text as ${name}`)} from (${found(grain)}) as found
     where (${CELL}) = (${sellerId}, ${startsAt}, ${scope}, ${ofId}, ${currency})`.execute(tx);
  return rows[0]!;
}

/** Sums that are not what the books and the receipts add up to. */
export const listWrongSums = (tx: Tx) => wrongSums(tx, "quarter", SOLD_BY_QUARTERS);

/** Of longer spans, those that are not what the shorter ones in them add up to. */
const wrongWholes = (
  tx: Tx,
  whole: "day" | "month",
  part: "quarter" | "day",
  startsAt: RawBuilder<unknown>,
) =>
  wrongSums(
    tx,
    whole,
    sql`select seller_id, scope, of_id, currency, ${startsAt} as starts_at, ${each((name) => name)}, gross as received
          from (${found(part)}) as parts`,
  );

export const listWrongDays = (tx: Tx) => wrongWholes(tx, "day", "quarter", DAY_OF);
export const listWrongMonths = (tx: Tx) => wrongWholes(tx, "month", "day", MONTH_OF);
