import { sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";
import { firstOf, lastOf, required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { eachColumn, type saleSums } from "../ledger/sales-sums.ts";

export type SumName = (typeof saleSums)[number];
export type Sums = Record<SumName, bigint>;

/** Of each bucket, or each product of it, some of the sums. */
export type SumRow<Name extends SumName = SumName> = Record<Name, bigint> & {
  currency: string;
  /** The seller, a product or a referrer, by the scope. */
  ofId: string;
  /** Which bucket of the span, from 0. */
  bucket: number;
};

export interface SumQuery {
  sellerId: string;
  scope: "all" | "product" | "referrer";
  /** One product or referrer; without, each. */
  ofId?: string | undefined;
  currencies: string[];
  /** When each bucket begins, and when the last one is over. */
  edges: Date[];
  /** From which sums most of a bucket is read: about as long as a bucket, or shorter. */
  by: "day" | "month";
}

const startOfDay = (at: Date, days = 0) => new Date(Math.floor(at.getTime() / DAY_MS + days) * DAY_MS);
export const startOfMonth = (at: Date, months = 0) =>
  new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + months));

/** The beginning that is closest, of the two around a moment. */
function nearestStart(at: Date, startOf: (at: Date, more?: number) => Date): Date {
  const [before, after] = [startOf(at), startOf(at, 1)];
  return at.getTime() - before.getTime() <= after.getTime() - at.getTime() ? before : after;
}

const moments = (dates: Date[]) => sql`${dates.map((date) => date.toISOString())}::timestamptz[]`;

const differ = (some: Date[], others: Date[]) =>
  some.some((date, index) => date.getTime() !== others[index]?.getTime());

/**
 * Sums of each bucket, exactly; those that are named. Its edges are moved to the closest beginnings of days or months, so that all
 * between them is read from few rows; what lies between an edge and where it was moved to is read from shorter sums, added to the one
 * bucket and taken from the other. What is not rolled up yet is added row by row. Buckets, or products, of which nothing is known have no
 * row.
 */
export async function sumRange<Name extends SumName>(
  db: Queries,
  wanted: SumQuery,
  names: readonly Name[],
): Promise<SumRow<Name>[]> {
  const { edges } = wanted;
  const days = edges.map((edge) => nearestStart(edge, startOfDay));
  const starts = wanted.by === "day" ? days : days.map((day) => nearestStart(day, startOfMonth));
  const [movedToDays, movedOn] = [differ(edges, days), differ(days, starts)];
  const parts = [
    wholeSums(wanted, names, [firstOf(starts), lastOf(starts)]),
    ...(movedOn ? [edgeSums(wanted, names, { grain: "day", at: "days", moved: "starts" })] : []),
    ...(movedToDays ? [edgeSums(wanted, names, { grain: "quarter", at: "edges", moved: "days" })] : []),
    pendingMovements(wanted, names),
  ];
  const { rows } = await sql<Record<string, string> & { currency: string; ofId: string }>`
    with given as materialized (
      select *
        from (select ${moments(edges)} as edges) as e
       cross join lateral (select ${movedToDays ? moments(days) : sql`edges`} as days) as d
       cross join lateral (select ${movedOn ? moments(starts) : sql`days`} as starts) as s)
    select currency, of_id, bucket - 1 as bucket, ${eachColumn((name) => `sum_bigint(sign * ${name})::text as ${name}`, names)}
      from (${sql.join(parts, sql` union all `)}) as parts
     group by currency, of_id, bucket order by currency`.execute(db);
  return rows.map((row) => {
    const of = { currency: row.currency, ofId: row.ofId, bucket: Number(row["bucket"]) };
    return Object.assign(toSums(row, names), of);
  });
}

/** Sums, which come as text: they may have more digits than a number holds. */
export function toSums<Name extends SumName>(row: Record<string, string>, names: readonly Name[]) {
  const sums = {} as Record<Name, bigint>;
  for (const name of names) sums[name] = BigInt(required(row[name], name));
  return sums;
}

const sumColumns = (names: readonly SumName[]) => eachColumn((name) => `s.${name}`, names);

const cellConditions = ({ sellerId, scope, ofId, currencies }: SumQuery, grain: string) => sql`
  s.seller_id = ${sellerId} and s.scope = ${scope} and s.grain = ${grain} and s.currency = any (${currencies})
  ${ofIdCondition({ sellerId, scope, ofId })}`;

/** All of a seller's sales stand under the seller. */
function ofIdCondition({ sellerId, scope, ofId }: Pick<SumQuery, "sellerId" | "scope" | "ofId">) {
  const only = scope === "all" ? sellerId : ofId;
  return only === undefined ? sql`` : sql`and s.of_id = ${only}`;
}

const wholeSums = (wanted: SumQuery, names: readonly SumName[], [from, until]: [Date, Date]) => sql`
  select s.currency, s.of_id, width_bucket(s.starts_at, (select starts from given)) as bucket, 1 as sign, ${sumColumns(names)}
    from sales_sums s
   where ${cellConditions(wanted, wanted.by)} and s.starts_at >= ${from} and s.starts_at < ${until}`;

interface MovedEdges {
  /** Of the sums that fill what lies between. */
  grain: "quarter" | "day";
  /** Which of the given moments were moved, and where to. */
  at: "edges" | "days";
  moved: "days" | "starts";
}

/**
 * Where an edge was moved back, what follows belongs to the bucket before it, and was counted to the one after; and the reverse. What
 * lies at each edge is read by itself (`offset 0`): else the planner may read all that somebody ever sold, and hold it against each.
 */
const edgeSums = (wanted: SumQuery, names: readonly SumName[], { grain, at, moved }: MovedEdges) => sql`
  select s.currency, s.of_id, side.bucket::int, side.sign, ${sumColumns(names)}
    from (select edge.number, case when edge.moved < edge.at then 1 else -1 end as sign, s.currency, s.of_id,
                 ${eachColumn((name) => `sum_bigint(s.${name}) as ${name}`, names)}
            from given cross join unnest(${sql.ref(at)}, ${sql.ref(moved)}) with ordinality as edge (at, moved, number)
           cross join lateral (
             select s.* from sales_sums s
              where ${cellConditions(wanted, grain)}
                and s.starts_at >= least(edge.at, edge.moved) and s.starts_at < greatest(edge.at, edge.moved) offset 0) as s
           where edge.at <> edge.moved group by 1, 2, 3, 4) as s
   cross join lateral (values (s.number - 1, s.sign), (s.number, -s.sign)) as side (bucket, sign)
   where side.bucket between 1 and ${wanted.edges.length - 1}`;

const ofMovement = { all: "sellerId", product: "productId", referrer: "referrerId" };

function pendingMovements({ sellerId, scope, ofId, currencies, edges }: SumQuery, names: readonly SumName[]) {
  const of = sql.ref(`s.${ofMovement[scope]}`);
  return sql`
    select s.currency, ${of}, width_bucket(s.moved_at, (select edges from given)), 1, ${sumColumns(names)}
      from sales_movements s
     where s.seller_id = ${sellerId} and s.currency = any (${currencies}) and ${of} is not null
       and s.moved_at >= ${firstOf(edges)} and s.moved_at < ${lastOf(edges)}
       ${ofId === undefined ? sql`` : sql`and ${of} = ${ofId}`}`;
}
