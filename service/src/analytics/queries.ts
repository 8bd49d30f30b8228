import { sql } from "kysely";
import { DAY_MS } from "../days.ts";
import type { Queries } from "../db/database.ts";
import { saleSums } from "../ledger/sold.ts";
import { each } from "./sums-queries.ts";

export type Sums = Record<(typeof saleSums)[number], bigint>;

export interface SumRow extends Sums {
  currency: string;
  /** The seller, a product or a referrer, by the scope. */
  ofId: string;
  /** Which bucket of the span, from 0. */
  bucket: number;
}

export interface Wanted {
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
function nearest(at: Date, startOf: (at: Date, more?: number) => Date): Date {
  const [before, after] = [startOf(at), startOf(at, 1)];
  return at.getTime() - before.getTime() <= after.getTime() - at.getTime() ? before : after;
}

const moments = (dates: Date[]) => sql`${dates.map((date) => date.toISOString())}::timestamptz[]`;

/**
 * The sums of each bucket, exactly. Its edges are moved to the closest beginnings of days or months, so that all between them is read
 * from few rows; what lies between an edge and where it was moved to is read from shorter sums, added to the one bucket and taken from
 * the other. What is not folded yet is added row by row. Buckets, or products, of which nothing is known have no row.
 */
export async function sumSpan(db: Queries, wanted: Wanted): Promise<SumRow[]> {
  const { edges } = wanted;
  const days = edges.map((edge) => nearest(edge, startOfDay));
  const whole = wanted.by === "day" ? days : days.map((day) => nearest(day, startOfMonth));
  const parts = [
    wholes(wanted, whole),
    ...(wanted.by === "month" ? [betweens(wanted, "day", days, whole)] : []),
    betweens(wanted, "quarter", edges, days),
    unfolded(wanted),
  ];
  const { rows } = await sql<Record<string, string>>`
    select currency, of_id, bucket - 1 as bucket, ${each((name) => `sum(sign * ${name})::text as ${name}`)}
      from (${sql.join(parts, sql` union all `)}) as parts
     group by currency, of_id, bucket order by currency`.execute(db);
  return rows.map(toSumRow);
}

const toSumRow = (row: Record<string, string>): SumRow => ({
  currency: row["currency"]!,
  ofId: row["of_id"]!,
  bucket: Number(row["bucket"]),
  ...toSums(row),
});

/** Sums, which come as text: they may have more digits than a number holds. */
export const toSums = (row: Record<string, string>): Sums =>
  Object.fromEntries(saleSums.map((name) => [name, BigInt(row[name]!)])) as Sums;

const SUMS = each((name) => `s.${name}`);

const cells = ({ sellerId, scope, ofId, currencies }: Wanted, grain: string) => sql`
  s.seller_id = ${sellerId} and s.scope = ${scope} and s.grain = ${grain} and s.currency = any (${currencies})
  ${ofIdOf({ sellerId, scope, ofId })}`;

/** All of a seller's sales stand under the seller. */
function ofIdOf({ sellerId, scope, ofId }: Pick<Wanted, "sellerId" | "scope" | "ofId">) {
  const only = scope === "all" ? sellerId : ofId;
  return only === undefined ? sql`` : sql`and s.of_id = ${only}`;
}

const wholes = (wanted: Wanted, starts: Date[]) => sql`
  select s.currency, s.of_id, width_bucket(s.starts_at, ${moments(starts)}) as bucket, 1 as sign, ${SUMS}
    from sales_sums s
   where ${cells(wanted, wanted.by)} and s.starts_at >= ${starts[0]!} and s.starts_at < ${starts.at(-1)!}`;

/**
 * Where an edge was moved back, what follows belongs to the bucket before it, and was counted to the one after; and the reverse. Each
 * edge is added up by itself, and once (`offset 0`): else the planner may read all that somebody ever sold, and hold it against each.
 */
const betweens = (wanted: Wanted, grain: "quarter" | "day", edges: Date[], moved: Date[]) => sql`
  select s.currency, s.of_id, side.bucket::int, side.sign, ${SUMS}
    from (select edge.number, case when edge.moved < edge.at then 1 else -1 end as sign, s.*
            from unnest(${moments(edges)}, ${moments(moved)}) with ordinality as edge (at, moved, number)
           cross join lateral (
             select s.currency, s.of_id, ${each((name) => `sum(s.${name})::bigint as ${name}`)} from sales_sums s
              where ${cells(wanted, grain)}
                and s.starts_at >= least(edge.at, edge.moved) and s.starts_at < greatest(edge.at, edge.moved)
              group by s.currency, s.of_id) as s
           where edge.at <> edge.moved offset 0) as s
   cross join lateral (values (s.number - 1, s.sign), (s.number, -s.sign)) as side (bucket, sign)
   where side.bucket between 1 and ${edges.length - 1}`;

const ofMovement = { all: "seller_id", product: "product_id", referrer: "referrer_id" };

function unfolded({ sellerId, scope, ofId, currencies, edges }: Wanted) {
  const of = sql.ref(`s.${ofMovement[scope]}`);
  return sql`
    select s.currency, ${of}, width_bucket(s.moved_at, ${moments(edges)}), 1, ${SUMS}
      from sales_movements s
     where s.seller_id = ${sellerId} and s.currency = any (${currencies}) and ${of} is not null
       and s.moved_at >= ${edges[0]!} and s.moved_at < ${edges.at(-1)!}
       ${ofId === undefined ? sql`` : sql`and ${of} = ${ofId}`}`;
}

/** Every currency in which somebody sold, that with the most sales first. */
export async function listCurrencies(db: Queries, sellerId: string): Promise<string[]> {
  const { rows } = await sql<{ currency: string }>`
    select currency
      from (select currency, sales from sales_sums
             where seller_id = ${sellerId} and scope = 'all' and of_id = ${sellerId} and grain = 'month'
            union all
            select currency, sales from sales_movements where seller_id = ${sellerId}) as sold
     group by currency order by sum(sales) desc, currency`.execute(db);
  return rows.map(({ currency }) => currency);
}

/** Viewers by day and product, in UTC: of all that somebody offers, or of one product of theirs. */
export async function sumViews(
  db: Queries,
  {
    sellerId,
    productId,
    dates,
    endDate,
  }: { sellerId: string; productId?: string | undefined; dates: string[]; endDate: string },
): Promise<Map<number, number>> {
  const days =
    productId === undefined
      ? sql`author_days d where d.author_id = ${sellerId}`
      : sql`product_days d where d.product_id = ${productId}`;
  const { rows } = await sql<{ bucket: number; views: number }>`
    select width_bucket(d.day, ${dates}::date[]) - 1 as bucket, sum(d.views)::bigint as views
      from ${days} and d.day between ${dates[0]!} and ${endDate}
     group by 1`.execute(db);
  return new Map(rows.map(({ bucket, views }) => [bucket, views]));
}

export interface ProductLabel {
  id: string;
  title: string;
  category: string | null;
  categoryName: string | null;
}

export async function listLabels(db: Queries, productIds: string[]): Promise<Map<string, ProductLabel>> {
  const rows = await db
    .selectFrom("products as p")
    .leftJoin("categories as c", "c.slug", "p.category")
    .select(["p.id", "p.title", "p.category", "c.name as categoryName"])
    .where("p.id", "=", sql<string>`any (${productIds})`)
    .execute();
  return new Map(rows.map((row) => [row.id, row]));
}

export const isAuthor = async (db: Queries, userId: string, productId: string): Promise<boolean> =>
  (await db
    .selectFrom("products")
    .select("id")
    .where("id", "=", productId)
    .where("author_id", "=", userId)
    .executeTakeFirst()) !== undefined;

/** By who they are. */
export async function listReferralCodes(db: Queries, userIds: string[]): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom("referral_codes")
    .select(["user_id as userId", "code"])
    .where("user_id", "=", sql<string>`any (${userIds})`)
    .execute();
  return new Map(rows.map(({ userId, code }) => [userId, code]));
}

/** All that payouts brought somebody, by currency. */
export async function sumPaidOut(db: Queries, userId: string): Promise<Map<string, bigint>> {
  const { rows } = await sql<{ currency: string; paid: string }>`
    select currency, sum(amount_minor)::text as paid from payouts
     where seller_id = ${userId} and status = 'completed' group by currency`.execute(db);
  return new Map(rows.map(({ currency, paid }) => [currency, BigInt(paid)]));
}
