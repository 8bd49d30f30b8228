import { sql } from "kysely";
import { DAY_MS, HOUR_MS } from "../../core/dates.ts";
import type { MinorUnits } from "../../core/money/amount.ts";
import { firstOf, lastOf, required } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { sendInOrder } from "../../platform/db/pipeline.ts";
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
  by: LongGrain;
}

type LongGrain = "day" | "month" | "year";
type StartOf = (at: Date, more?: number) => Date;

export const startOfMonth: StartOf = (at, months = 0) =>
  new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + months));
/** From short to long: a month consists of whole days, and a year of whole months. */
const LONG_GRAINS: { grain: LongGrain; startOf: StartOf }[] = [
  { grain: "day", startOf: (at, days = 0) => new Date(Math.floor(at.getTime() / DAY_MS + days) * DAY_MS) },
  { grain: "month", startOf: startOfMonth },
  { grain: "year", startOf: (at, years = 0) => new Date(Date.UTC(at.getUTCFullYear() + years, 0)) },
];

function nearestStart(at: Date, startOf: StartOf): Date {
  const [before, after] = [startOf(at), startOf(at, 1)];
  return at.getTime() - before.getTime() <= after.getTime() - at.getTime() ? before : after;
}

/**
 * Sent as seconds: formatting and parsing thousands of timestamps takes ten times as long. Every edge is a whole quarter of an hour, so no
 * fraction is lost.
 */
const moments = (dates: Date[]) =>
  sql`array(select to_timestamp(s) from unnest(${dates.map((date) => date.getTime() / 1000)}::float8[]) as s)`;

const differ = (some: Date[], others: Date[]) =>
  some.some((date, index) => date.getTime() !== others[index]?.getTime());

/** Returns a row for each bucket of each seller, product or referrer. Empty buckets have none. */
export async function sumRange<Name extends SumName>(
  db: Queries,
  query: SumQuery,
  names: readonly Name[],
): Promise<SumRow<Name>[]> {
  const { given, parts } = splitRange(query, names);
  const { rows } = await sql<SumText>`
    ${given}
    select currency, of_id as "ofId", bucket - 1 as bucket, ${eachColumn((name) => `sum_bigint(${name})::text as ${name}`, names)}
      from (${parts}) as parts
     group by currency, of_id, bucket order by currency`.execute(db);
  return rows.map((row) => {
    const cell = { currency: row.currency, ofId: row.ofId, bucket: Number(row["bucket"]) };
    return Object.assign(toSums(row, names), cell);
  });
}

interface BucketQuery extends Omit<SumQuery, "currencies"> {
  currency: string;
}

/** Returns a row for each bucket of one seller, product or referrer, with zeros if nothing moved. */
export async function sumBuckets<Name extends SumName>(
  db: Queries,
  { currency, ...query }: BucketQuery,
  names: readonly Name[],
): Promise<Record<Name, MinorUnits>[]> {
  const { given, parts } = splitRange({ ...query, currencies: [currency] }, names);
  const { rows } = await sql<Record<Name | "buckets", string | null>>`
    ${given}
    select array_agg(bucket)::text as buckets, ${eachColumn((name) => `array_agg(${name})::text as ${name}`, names)}
      from (select bucket, ${eachColumn((name) => `sum_bigint(${name}) as ${name}`, names)}
              from (${parts}) as parts group by bucket) as sums`.execute(db);
  const columns = firstOf(rows);
  const values = names.map((name) => [name, parseArray(columns[name])] as const);
  const zeros = Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, MinorUnits>;
  const sums = query.edges.slice(1).map(() => ({ ...zeros }));
  for (const [at, bucket] of parseArray(columns.buckets).entries()) {
    const row = required(sums[Number(bucket) - 1], "the row of a bucket");
    for (const [name, column] of values) row[name] = required(column[at], name);
  }
  return sums;
}

/**
 * Parses PostgreSQL's text of an integer array; null is empty. Returns bigints if one value is unsafe. JSON parses thousands of integers
 * in a tenth of the time that pg needs for as many values.
 */
export function parseArray(text: string | null): (number | bigint)[] {
  const list = text === null ? "" : text.slice(1, -1);
  const numbers = JSON.parse(`[${list}]`) as number[];
  return numbers.every(Number.isSafeInteger) ? numbers : list.split(",").map(BigInt);
}

interface RankQuery extends BucketQuery {
  limit: number;
}

/**
 * Returns the products or referrers that moved, with their sums of the whole range: the highest gross sums first, then
 * the most sales. Only the returned sums become text: that of all of them took longer than adding up 50,000 rows.
 *
 * Plain index scans are off for this statement, so PostgreSQL uses bitmap scans. The planner assumes that the sums of a month are
 * neighbors on disk; this holds for a seller's sums only. `names` must contain `gross` and `sales`.
 */
export async function rankRange<Name extends SumName>(
  tx: Tx,
  { currency, limit, ...query }: RankQuery,
  names: readonly Name[],
): Promise<(Record<Name, bigint> & { ofId: string })[]> {
  const { given, parts } = splitRange({ ...query, currencies: [currency] }, names);
  const hasMoved = sql.join(
    names.map((name) => sql`sum_bigint(${sql.ref(name)}) <> 0`),
    sql` or `,
  );
  const [, { rows }] = await sendInOrder(tx, [
    () => sql`set local enable_indexscan = off`.execute(tx),
    () =>
      sql<SumText>`
        ${given}
        select of_id as "ofId", ${eachColumn((name) => `ranked.${name}::text as ${name}`, names)}
          from (select of_id, ${eachColumn((name) => `sum_bigint(${name}) as ${name}`, names)}
                  from (${parts}) as parts group by of_id having ${hasMoved}
                 order by sum_bigint(gross) desc, sum_bigint(sales) desc, of_id limit ${limit}) as ranked
         order by ranked.gross desc, ranked.sales desc, of_id`.execute(tx),
    () => sql`set local enable_indexscan = on`.execute(tx),
  ]);
  return rows.map((row) => Object.assign(toSums(row, names), { ofId: row.ofId }));
}

type SumText = Record<string, string> & { currency: string; ofId: string };

/** PostgreSQL returns sums as text: they may exceed the safe integers of a number. */
export function toSums<Name extends SumName>(row: Record<string, string>, names: readonly Name[]) {
  const sums = {} as Record<Name, bigint>;
  for (const name of names) sums[name] = BigInt(required(row[name], name));
  return sums;
}

/** For each grain up to that of the query: its starts nearest to the edges, each nearest to the starts of the shorter grain. */
function alignEdges({ edges, by }: Pick<SumQuery, "edges" | "by">): { grain: LongGrain; starts: Date[] }[] {
  let starts = edges;
  const longest = LONG_GRAINS.findIndex(({ grain }) => grain === by);
  return LONG_GRAINS.slice(0, longest + 1).map(({ grain, startOf }) => {
    starts = starts.map((start) => nearestStart(start, startOf));
    return { grain, starts };
  });
}

/** Years, if they and the months at both ends are fewer than the months alone. For ranges of one bucket. */
export function grainOfTotals(edges: Date[]): "month" | "year" {
  const [, months, years] = alignEdges({ edges, by: "year" }).map(({ starts }) => starts.map(monthOf));
  const [fromMonth, untilMonth] = endsOf(required(months, "starts of months"));
  const [fromYear, untilYear] = endsOf(required(years, "starts of years"));
  const atTheEnds = Math.abs(fromMonth - fromYear) + Math.abs(untilMonth - untilYear);
  return (untilYear - fromYear) / 12 + atTheEnds < untilMonth - fromMonth ? "year" : "month";
}

const monthOf = (at: Date) => at.getUTCFullYear() * 12 + at.getUTCMonth();
const endsOf = (starts: number[]) => [firstOf(starts), lastOf(starts)] as const;

/**
 * The rows that add up to exact sums, few of them: each edge moves to the nearest start of a day, then of a month and a year if the query
 * is by these, and sums of the shorter grain correct the difference on both sides. Movements that are not rolled up yet are added row by
 * row. `given` comes before the statement that reads `parts`.
 */
function splitRange(query: SumQuery, names: readonly SumName[]) {
  const { edges } = query;
  const aligned = alignEdges(query);
  const gaps = aligned.map((to, index) => {
    const from =
      index === 0 ? { grain: "edges" as const, starts: edges } : required(aligned[index - 1], "a grain");
    return { from, to, hasMoved: differ(from.starts, to.starts) };
  });
  const { starts } = lastOf(aligned);
  const parts = [
    wholeSums(query, names, [firstOf(starts), lastOf(starts)]),
    ...gaps
      .filter(({ hasMoved }) => hasMoved)
      .map(({ from, to }) =>
        from.grain === "edges"
          ? edgesOfDays(query, names, to.starts)
          : edgeSums(query, names, { grain: from.grain, at: from.grain, moved: to.grain }),
      ),
    pendingMovements(query, names),
  ];
  const columns = gaps.map(({ from, to, hasMoved }) => {
    const column = hasMoved ? moments(to.starts) : sql.ref(from.grain);
    return sql`cross join lateral (select ${column} as ${sql.ref(to.grain)}) as ${sql.ref(`by_${to.grain}`)}`;
  });
  const given = sql`
    with given as materialized (
      select * from (select ${moments(edges)} as edges) as e ${sql.join(columns, sql` `)})`;
  return { given, parts: sql.join(parts, sql` union all `) };
}

const sumColumns = (names: readonly SumName[]) => eachColumn((name) => `s.${name}`, names);

const cellConditions = ({ sellerId, scope, ofId, currencies }: SumQuery, grain: string | string[]) => sql`
  s.seller_id = ${sellerId} and s.scope = ${scope} and ${typeof grain === "string" ? sql`s.grain = ${grain}` : sql`s.grain = any (${grain})`}
  and ${currencyCondition(currencies)} ${ofIdCondition({ sellerId, scope, ofId })}`;

/** With `=`, the planner drops the column from the grouping. */
const currencyCondition = (currencies: string[]) =>
  currencies.length === 1 ? sql`s.currency = ${firstOf(currencies)}` : sql`s.currency = any (${currencies})`;

/** The scope `all` has the seller's id in `of_id`. */
function ofIdCondition({ sellerId, scope, ofId }: Pick<SumQuery, "sellerId" | "scope" | "ofId">) {
  const only = scope === "all" ? sellerId : ofId;
  return only === undefined ? sql`` : sql`and s.of_id = ${only}`;
}

function wholeSums(query: SumQuery, names: readonly SumName[], [from, until]: [Date, Date]) {
  const sums = sql`
    from sales_sums s
   where ${cellConditions(query, query.by)} and s.starts_at >= ${from} and s.starts_at < ${until}`;
  // `union all` would pass on thousands of rows.
  if (hasOneBucket(query))
    return sql`
      select s.currency, s.of_id, 1 as bucket, ${eachColumn((name) => `sum_bigint(s.${name}) as ${name}`, names)} ${sums} group by 1, 2`;
  return sql`
    select s.currency, s.of_id, width_bucket(s.starts_at, (select ${sql.ref(query.by)} from given)) as bucket, ${sumColumns(names)} ${sums}`;
}

const hasOneBucket = ({ edges }: SumQuery) => edges.length === 2;

/** The time between the edges and the midnights of UTC next to them. */
function edgesOfDays(query: SumQuery, names: readonly SumName[], days: Date[]) {
  return canReadHours(query)
    ? hourSums(query, names, days)
    : edgeSums(query, names, { grain: "quarter", at: "edges", moved: "day" });
}

/** Sums by hour exist for all sales of a seller. Buckets of a week and more have so few edges that quarters between these are fewer. */
const canReadHours = ({ scope, edges }: SumQuery) =>
  scope === "all" &&
  edges.every((edge) => edge.getTime() % HOUR_MS === 0) &&
  lastOf(edges).getTime() - firstOf(edges).getTime() < edges.length * 2 * DAY_MS;

/**
 * An hour between an edge and its midnight counts to the bucket of the edges, and was counted to that of the midnights. The hours of the
 * day of all days are read, since each of them is in one place of the index; finding 1,825 edges in it took 18 ms of 24.
 * `offset 0` computes both buckets once for each hour.
 */
function hourSums(query: SumQuery, names: readonly SumName[], days: Date[]) {
  const grains = hoursBetween(query.edges, days).map((hour) => `hour-${String(hour).padStart(2, "0")}`);
  const [from, until] = [firstOf(days), lastOf(days)];
  const [first, last] = [firstOf(query.edges), lastOf(query.edges)];
  return sql`
  select s.currency, s.of_id, side.bucket, ${eachColumn((name) => `side.sign * s.${name}`, names)}
    from (select s.currency, s.of_id, width_bucket(s.starts_at, (select edges from given)) as at,
                 width_bucket(s.starts_at, (select day from given)) as moved,
                 ${eachColumn((name) => `sum_bigint(s.${name}) as ${name}`, names)}
            from sales_sums s
           where ${cellConditions(query, grains)}
             and s.starts_at >= ${from < first ? from : first} and s.starts_at < ${until > last ? until : last}
           group by 1, 2, 3, 4 offset 0) as s
   cross join lateral (values (s.at, 1), (s.moved, -1)) as side (bucket, sign)
   where s.at <> s.moved and side.bucket between 1 and ${query.edges.length - 1}`;
}

/** The hours of the day in UTC between any edge and its midnight. */
function hoursBetween(edges: Date[], days: Date[]): number[] {
  const hours = new Set<number>();
  for (const [index, edge] of edges.entries()) {
    const day = required(days[index], "the midnight of an edge");
    const end = Math.max(edge.getTime(), day.getTime());
    for (let at = Math.min(edge.getTime(), day.getTime()); at < end; at += HOUR_MS)
      hours.add(new Date(at).getUTCHours());
  }
  return [...hours];
}

interface MovedEdges {
  /** The grain of the sums that fill the gap. */
  grain: "quarter" | LongGrain;
  at: "edges" | LongGrain;
  moved: LongGrain;
}

/**
 * If an edge moved back, the sums in the gap belong to the bucket before it and were counted to the bucket after it. They
 * are added up edge by edge: the planner cannot read all sums of the seller and join them to each edge.
 */
const edgeSums = (query: SumQuery, names: readonly SumName[], { grain, at, moved }: MovedEdges) => sql`
  select s.currency, s.of_id, side.bucket::int, ${eachColumn((name) => `side.sign * s.${name}`, names)}
    from given cross join unnest(${sql.ref(at)}, ${sql.ref(moved)}) with ordinality as edge (at, moved, number)
   cross join lateral (
     select s.currency, s.of_id, ${eachColumn((name) => `sum_bigint(s.${name}) as ${name}`, names)} from sales_sums s
      where ${cellConditions(query, grain)}
        and s.starts_at >= least(edge.at, edge.moved) and s.starts_at < greatest(edge.at, edge.moved)
      group by 1, 2) as s
   cross join lateral (select case when edge.moved < edge.at then 1 else -1 end) as gap (sign)
   cross join lateral (values (edge.number - 1, gap.sign), (edge.number, -gap.sign)) as side (bucket, sign)
   where edge.at <> edge.moved and side.bucket between 1 and ${query.edges.length - 1}`;

const ofMovement = { all: "sellerId", product: "productId", referrer: "referrerId" };

function pendingMovements({ sellerId, scope, ofId, currencies, edges }: SumQuery, names: readonly SumName[]) {
  const idColumn = sql.ref(`s.${ofMovement[scope]}`);
  return sql`
    select s.currency, ${idColumn}, width_bucket(s.moved_at, (select edges from given)), ${sumColumns(names)}
      from sales_movements s
     where s.seller_id = ${sellerId} and ${currencyCondition(currencies)} and ${idColumn} is not null
       and s.moved_at >= ${firstOf(edges)} and s.moved_at < ${lastOf(edges)}
       ${ofId === undefined ? sql`` : sql`and ${idColumn} = ${ofId}`}`;
}
