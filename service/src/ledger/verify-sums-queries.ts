import { type RawBuilder, sql } from "kysely";
import type { Tx } from "../db/database.ts";
import { DAY_OF, each, MONTH_OF, SOLD_BY_QUARTERS, saleSums } from "./sold.ts";
import { firstOf } from "./verify-queries.ts";

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
                           when 'dispute_opened' then d.opened_at
                           else d.closed_at end as "rightAt"
          from ledger_transactions t
          left join orders o on t.kind = 'sale' and o.id = t.source_id
          left join refunds r on t.kind in ('refund', 'refund_returned') and r.id = t.source_id
          left join disputes d on t.kind like 'dispute%' and d.id = t.source_id
         where t.kind in ('sale', 'refund', 'refund_returned', 'dispute_opened', 'dispute_won', 'dispute_lost')) as bookings
       where "occurredAt" <> "rightAt"`,
  );

export interface WrongSum {
  sellerId: string;
  startsAt: Date;
  grain: "quarter" | "day" | "month";
  scope: "all" | "product" | "referrer";
  ofId: string;
  currency: string;
  /** One for each column that differs: what it is, and what it should be. */
  faults: string[];
}

/** What a sum is of, besides its grain: what follows is of one grain each. */
const CELL = sql`seller_id, scope, of_id, currency, starts_at`;

const differs = (column: string, due = `due_${column}`) => `sum_bigint(${due}) <> sum_bigint(${column})`;
const fault = (column: string, due = `due_${column}`, right = "%s") =>
  `case when ${differs(column, due)} then format('${column} of %s and not ${right}', sum_bigint(${column}), sum_bigint(${due})) end`;

/** Both are rows of the cell and of the sums; those of `due` say also what is `received`. */
const wrongSums = (tx: Tx, grain: WrongSum["grain"], due: RawBuilder<unknown>, found: RawBuilder<unknown>) =>
  firstOf(
    tx,
    sql<WrongSum>`
      select seller_id as "sellerId", starts_at as "startsAt", ${grain}::text as grain, scope, of_id as "ofId", currency,
             array_remove(array[${each((name) => fault(name))},
                                ${sql.raw(fault("gross", "received", "the %s of receipts"))}], null) as faults
        from (select ${CELL}, ${each((name) => `${name} as due_${name}, 0::bigint as ${name}`)}, received from (${due}) as due
              union all
              select ${CELL}, ${each((name) => `0::bigint, ${name}`)}, 0::bigint from (${found}) as found) as both_sides
       group by ${CELL}
      having ${sql.raw(saleSums.map((name) => differs(name)).join(" or "))} or ${sql.raw(differs("gross", "received"))}`,
  );

const found = (grain: WrongSum["grain"]) => sql`select * from sales_cells_now where grain = ${grain}`;

/** Sums that are not what the books and the receipts add up to. */
export const listWrongSums = (tx: Tx) => wrongSums(tx, "quarter", SOLD_BY_QUARTERS, found("quarter"));

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
    found(whole),
  );

export const listWrongDays = (tx: Tx) => wrongWholes(tx, "day", "quarter", DAY_OF);
export const listWrongMonths = (tx: Tx) => wrongWholes(tx, "month", "day", MONTH_OF);
