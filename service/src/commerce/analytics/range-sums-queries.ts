import { sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";
import { firstOf, lastOf, required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { eachColumn, type saleSums } from "../ledger/sales-sums.ts";

export type SumName = (typeof saleSums)[number];
export type Sums = Record<SumName, bigint>;

export type SumRow<Name extends SumName = SumName> = Record<Name, bigint> & {
  currency: string;
  /** A seller, product or referrer id, depending on the scope. */
  ofId: string;
  bucket: number;
};

export interface SumQuery {
  sellerId: string;
  scope: "all" | "product" | "referrer";
  ofId?: string | undefined;
  currencies: string[];
  /** The start of each bucket, then the end of the last one. */
  edges: Date[];
  /** The grain of the sums that cover most of a bucket: at most about a bucket long. */
  by: "day" | "month";
  /** Only so many rows that moved, with the highest gross amounts and then the most sales. Default: all. */
  highest?: number | undefined;
}

const startOfDay = (at: Date, days = 0) => new Date(Math.floor(at.getTime() / DAY_MS + days) * DAY_MS);
export const startOfMonth = (at: Date, months = 0) =>
  new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + months));

function nearestStart(at: Date, startOf: (at: Date, more?: number) => Date): Date {
  const [before, after] = [startOf(at), startOf(at, 1)];
  return at.getTime() - before.getTime() <= after.getTime() - at.getTime() ? before : after;
}

const moments = (dates: Date[]) => sql`${dates.map((date) => date.toISOString())}::timestamptz[]`;

const differ = (some: Date[], others: Date[]) =>
  some.some((date, index) => date.getTime() !== others[index]?.getTime());

/**
 * Returns exact sums from few rows. Each edge moves to the nearest start of a day or month; sums of a finer grain correct the difference
 * on both sides. Movements that are not rolled up yet are added row by row. Empty buckets have no row.
 */
export async function sumRange<Name extends SumName>(
  db: Queries,
  query: SumQuery,
  names: readonly Name[],
): Promise<SumRow<Name>[]> {
  const { edges } = query;
  const days = edges.map((edge) => nearestStart(edge, startOfDay));
  const starts = query.by === "day" ? days : days.map((day) => nearestStart(day, startOfMonth));
  const [movedToDays, movedOn] = [differ(edges, days), differ(days, starts)];
  const parts = [
    wholeSums(query, names, [firstOf(starts), lastOf(starts)]),
    ...(movedOn ? [edgeSums(query, names, { grain: "day", at: "days", moved: "starts" })] : []),
    ...(movedToDays ? [edgeSums(query, names, { grain: "quarter", at: "edges", moved: "days" })] : []),
    pendingMovements(query, names),
  ];
  const sum = (name: SumName) => sql`sum_bigint(${sql.ref(name)})`;
  const order =
    query.highest === undefined
      ? sql`order by currency`
      : sql`having ${sql.join(
          names.map((name) => sql`${sum(name)} <> 0`),
          sql` or `,
        )} order by ${sum("gross")} desc, ${sum("sales")} desc, of_id limit ${query.highest}`;
  const { rows } = await sql<Record<string, string> & { currency: string; ofId: string }>`
    with given as materialized (
      select *
        from (select ${moments(edges)} as edges) as e
       cross join lateral (select ${movedToDays ? moments(days) : sql`edges`} as days) as d
       cross join lateral (select ${movedOn ? moments(starts) : sql`days`} as starts) as s)
    select currency, of_id, bucket - 1 as bucket, ${eachColumn((name) => `sum_bigint(${name})::text as ${name}`, names)}
      from (${sql.join(parts, sql` union all `)}) as parts
     group by currency, of_id, bucket ${order}`.execute(db);
  return rows.map((row) => {
    const cell = { currency: row.currency, ofId: row.ofId, bucket: Number(row["bucket"]) };
    return Object.assign(toSums(row, names), cell);
  });
}

/** PostgreSQL returns sums as text: they may exceed the safe integers of a number. */
export function toSums<Name extends SumName>(row: Record<string, string>, names: readonly Name[]) {
  const sums = {} as Record<Name, bigint>;
  for (const name of names) sums[name] = BigInt(required(row[name], name));
  return sums;
}

const sumColumns = (names: readonly SumName[]) => eachColumn((name) => `s.${name}`, names);

const cellConditions = ({ sellerId, scope, ofId, currencies }: SumQuery, grain: string) => sql`
  s.seller_id = ${sellerId} and s.scope = ${scope} and s.grain = ${grain} and s.currency = any (${currencies})
  ${ofIdCondition({ sellerId, scope, ofId })}`;

/** The scope `all` has the seller's id in `of_id`. */
function ofIdCondition({ sellerId, scope, ofId }: Pick<SumQuery, "sellerId" | "scope" | "ofId">) {
  const only = scope === "all" ? sellerId : ofId;
  return only === undefined ? sql`` : sql`and s.of_id = ${only}`;
}

const wholeSums = (query: SumQuery, names: readonly SumName[], [from, until]: [Date, Date]) => sql`
  select s.currency, s.of_id, width_bucket(s.starts_at, (select starts from given)) as bucket, ${sumColumns(names)}
    from sales_sums s
   where ${cellConditions(query, query.by)} and s.starts_at >= ${from} and s.starts_at < ${until}`;

interface MovedEdges {
  /** The grain of the sums that fill the gap. */
  grain: "quarter" | "day";
  at: "edges" | "days";
  moved: "days" | "starts";
}

/**
 * If an edge moved back, the sums in the gap belong to the bucket before it and were counted to the bucket after it. `offset 0` stops the
 * planner from reading all sums of the seller and joining them to each edge.
 */
const edgeSums = (query: SumQuery, names: readonly SumName[], { grain, at, moved }: MovedEdges) => sql`
  select s.currency, s.of_id, side.bucket::int, ${eachColumn((name) => `side.sign * s.${name}`, names)}
    from (select edge.number, case when edge.moved < edge.at then 1 else -1 end as sign, s.currency, s.of_id,
                 ${eachColumn((name) => `sum_bigint(s.${name}) as ${name}`, names)}
            from given cross join unnest(${sql.ref(at)}, ${sql.ref(moved)}) with ordinality as edge (at, moved, number)
           cross join lateral (
             select s.* from sales_sums s
              where ${cellConditions(query, grain)}
                and s.starts_at >= least(edge.at, edge.moved) and s.starts_at < greatest(edge.at, edge.moved) offset 0) as s
           where edge.at <> edge.moved group by 1, 2, 3, 4) as s
   cross join lateral (values (s.number - 1, s.sign), (s.number, -s.sign)) as side (bucket, sign)
   where side.bucket between 1 and ${query.edges.length - 1}`;

const ofMovement = { all: "sellerId", product: "productId", referrer: "referrerId" };

function pendingMovements({ sellerId, scope, ofId, currencies, edges }: SumQuery, names: readonly SumName[]) {
  const idColumn = sql.ref(`s.${ofMovement[scope]}`);
  return sql`
    select s.currency, ${idColumn}, width_bucket(s.moved_at, (select edges from given)), ${sumColumns(names)}
      from sales_movements s
     where s.seller_id = ${sellerId} and s.currency = any (${currencies}) and ${idColumn} is not null
       and s.moved_at >= ${firstOf(edges)} and s.moved_at < ${lastOf(edges)}
       ${ofId === undefined ? sql`` : sql`and ${idColumn} = ${ofId}`}`;
}
