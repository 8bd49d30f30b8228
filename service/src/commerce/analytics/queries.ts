import { sql } from "kysely";
import { DAY_MS } from "../../core/dates.ts";
import { firstOf, required } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { eachColumn, SALES } from "../ledger/sales-sums.ts";
import { parseArray, type SumName, toSums } from "./range-sums-queries.ts";

/** The currency with the most sales comes first. */
export async function listCurrencies(db: Queries, sellerId: string): Promise<string[]> {
  const { rows } = await sql<{ currency: string }>`
    select currency
      from (select currency, sales from sales_sums
             where seller_id = ${sellerId} and scope = 'all' and of_id = ${sellerId} and grain = 'year'
            union all
            select currency, sales from sales_movements where seller_id = ${sellerId}) as sold
     group by currency order by sum(sales) desc, currency`.execute(db);
  return rows.map(({ currency }) => currency);
}

/** Returns one number for each bucket. */
export async function sumViews(
  db: Queries,
  {
    sellerId,
    productId,
    dates,
    endDate,
  }: { sellerId: string; productId?: string | undefined; dates: string[]; endDate: string },
): Promise<number[]> {
  const viewed =
    productId === undefined
      ? sql`author_daily_views d where d.author_id = ${sellerId}`
      : sql`product_daily_views d where d.product_id = ${productId}`;
  const { rows } = await sql<Record<"days" | "views", string | null>>`
    select array_agg(d.day - ${firstOf(dates)}::date)::text as days, array_agg(d.views)::text as views
      from ${viewed} and d.day between ${firstOf(dates)} and ${endDate}`.execute(db);
  const { days, views } = firstOf(rows);
  const bucketOfDay = bucketsByDay(dates, endDate);
  const sums = dates.map(() => 0);
  const counts = parseArray(views);
  for (const [at, day] of parseArray(days).entries()) {
    const bucket = required(bucketOfDay[Number(day)], "the bucket of a day");
    sums[bucket] = required(sums[bucket], "the views of a bucket") + Number(counts[at]);
  }
  return sums;
}

/** For each day from the first one, the index of the bucket that it belongs to. */
function bucketsByDay(dates: string[], endDate: string): number[] {
  const starts = [...dates.map((date) => Date.parse(date)), Date.parse(endDate) + DAY_MS];
  return dates.flatMap((_date, bucket) => {
    const [start, end] = [required(starts[bucket], "a bucket"), required(starts[bucket + 1], "its end")];
    return Array.from({ length: (end - start) / DAY_MS }, () => bucket);
  });
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
    .where("authorId", "=", userId)
    .executeTakeFirst()) !== undefined;

interface ReferralScope {
  sellerId: string;
  productId: string;
  currency: string;
  from: Date;
  until: Date;
}

/** By the ledger: reads the referred orders of the product, and the entries of each. */
export async function sumReferralsOfProduct<Name extends SumName>(
  db: Queries,
  { sellerId, productId, currency, from, until }: ReferralScope,
  names: readonly Name[],
) {
  const { rows } = await sql<Record<string, string> & { ofId: string }>`
    select s.referrer_id as "ofId", ${eachColumn((name) => `sum_bigint(s.${name})::text as ${name}`, names)}
      from (${SALES}) as s
     where s.seller_id = ${sellerId} and s.product_id = ${productId} and s.referrer_id is not null
       and s.currency = ${currency} and s.moved_at >= ${from} and s.moved_at < ${until}
     group by 1`.execute(db);
  return rows.map((row) => ({ ...toSums(row, names), ofId: row.ofId, currency }));
}

export async function listReferralCodes(db: Queries, userIds: string[]): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom("referralCodes")
    .select(["userId", "code"])
    .where("userId", "=", sql<string>`any (${userIds})`)
    .execute();
  return new Map(rows.map(({ userId, code }) => [userId, code]));
}
