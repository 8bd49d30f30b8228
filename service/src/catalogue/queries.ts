import { sql } from "kysely";
import type { Queries, Tx } from "../db/database.ts";
import { offsetOf, type Page, type Paging } from "../db/paging.ts";

/** The channel on which every process hears that lists show something else. */
export const CATALOGUE_CHANNEL = "catalogue";

export const tellOfChange = (tx: Tx) => sql`select pg_notify(${CATALOGUE_CHANNEL}, '')`.execute(tx);

export interface ListingRow {
  id: string;
  authorId: string;
  status: string;
  type: string;
  category: string | null;
  lang: string | null;
  currency: string;
  priceMinor: number;
  compatibility: string[];
  tags: string[];
  title: string;
  createdAt: Date;
  updatedAt: Date;
  publishedAt: Date | null;
  search: string;
}

/** The numbers come from product_stats, whose row is locked: a sale counts before or after, and never gets lost. */
export async function writeListing(tx: Tx, listing: ListingRow): Promise<void> {
  const { id, authorId, status, type, category, lang, currency, priceMinor, compatibility, tags } = listing;
  const { title, createdAt, updatedAt, publishedAt, search } = listing;
  await sql`
    insert into listings (product_id, author_id, status, type, category, lang, currency, price_minor, compatibility,
                          tags, title, created_at, updated_at, published_at, purchases, views, rating_mean,
                          rating_score, trending, search)
    select ${id}, ${authorId}, ${status}, ${type}, ${category}, ${lang}, ${currency}, ${priceMinor}, ${compatibility},
           ${tags}, ${title}, ${createdAt}, ${updatedAt}, ${publishedAt}, s.purchases, s.views, s.rating_mean,
           s.rating_score, s.trending, ${search}::tsvector
      from (select * from product_stats where product_id = ${id} for update) s
    on conflict (product_id) do update set
           status = excluded.status, category = excluded.category, lang = excluded.lang,
           currency = excluded.currency, price_minor = excluded.price_minor, compatibility = excluded.compatibility,
           tags = excluded.tags, title = excluded.title, updated_at = excluded.updated_at,
           published_at = excluded.published_at, purchases = excluded.purchases, views = excluded.views,
           rating_mean = excluded.rating_mean, rating_score = excluded.rating_score, trending = excluded.trending,
           search = excluded.search`.execute(tx);
}

export const removeListing = (tx: Tx, id: string) =>
  tx.deleteFrom("listings").where("product_id", "=", id).execute();

/** In the order of the alphabet, so that two transactions cannot wait for each other. */
export const writeWords = (tx: Tx, words: string[]) =>
  sql`insert into search_words (word) select unnest(${words}::text[]) on conflict do nothing`.execute(tx);

export const hasCategory = async (db: Queries, slug: string): Promise<boolean> =>
  (await db.selectFrom("categories").select("slug").where("slug", "=", slug).executeTakeFirst()) !==
  undefined;

export async function findCategories(db: Queries, slugs: string[]): Promise<string[]> {
  const { rows } = await sql<{ slug: string }>`
    select slug from categories where slug = any (${slugs}::text[])`.execute(db);
  return rows.map((row) => row.slug);
}

/** A category with those below it. */
export async function findBelow(db: Queries, slug: string): Promise<string[]> {
  const rows = await db
    .selectFrom("categories")
    .select("slug")
    .where((row) => row.or([row("slug", "=", slug), row("parent", "=", slug)]))
    .execute();
  return rows.map((row) => row.slug);
}

/** Every category with the count of published products in it and below it. */
export async function listCategories(db: Queries, paging: Paging) {
  const { rows } = await sql<{ slug: string; name: string; parent: string | null; products: number }>`
    select c.slug, c.name, c.parent, count(l.product_id)::int as products
      from categories c
      left join categories below on below.slug = c.slug or below.parent = c.slug
      left join listings l on l.category = below.slug and l.status = 'published'
     group by c.slug order by coalesce(c.parent, c.slug), c.parent nulls first, c.slug
     limit ${paging.limit} offset ${offsetOf(paging)}`.execute(db);
  const { total } = await db
    .selectFrom("categories")
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: rows, total } satisfies Page<unknown>;
}

/** One of the half-life sums of 0002_products.sql: adds 2^at to the sum whose log2 is kept. */
export const addSale = (tx: Tx, productId: string, at: number) =>
  sql`
    with counted as (
      update product_stats
         set purchases = purchases + 1,
             trending = greatest(trending, ${at}::float8)
                        + log(2, (1 + power(2::numeric, -least(abs(trending - ${at}::float8), 200)::numeric)))::float8
       where product_id = ${productId}
      returning product_id, purchases, trending)
    update listings l set purchases = c.purchases, trending = c.trending
      from counted c where l.product_id = c.product_id`.execute(tx);

export const addRating = (tx: Tx, productId: string, rating: number) =>
  sql`
    with counted as (
      update product_stats set rating_sum = rating_sum + ${rating}, rating_count = rating_count + 1
       where product_id = ${productId}
      returning product_id, rating_mean, rating_score)
    update listings l set rating_mean = c.rating_mean, rating_score = c.rating_score
      from counted c where l.product_id = c.product_id`.execute(tx);

export interface View {
  productId: string;
  day: string;
  viewer: string;
}

/**
 * Keeps the views that are new today and adds them to the counters, in one statement for all of them. Products that
 * went meanwhile are left out, and the order is the same everywhere, so that two nodes cannot wait for each other.
 */
export const addViews = (db: Queries, views: View[]) =>
  sql`
    with seen as (
      insert into product_views (product_id, day, viewer)
      select v.* from unnest(${views.map((view) => view.productId)}::uuid[],
                             ${views.map((view) => view.day)}::date[],
                             ${views.map((view) => view.viewer)}::text[]) as v (product_id, day, viewer)
        join products p on p.id = v.product_id
       order by v.product_id, v.day, v.viewer
      on conflict do nothing returning product_id),
    counted as (
      update product_stats s set views = s.views + n.count
        from (select product_id, count(*) as count from seen group by product_id) n
       where s.product_id = n.product_id
      returning s.product_id, s.views)
    -- A listing moves in every one of its indexes: the order follows by hundredths.
    update listings l set views = c.views from counted c
     where l.product_id = c.product_id and c.views > l.views + l.views / 100`.execute(db);

export const insertCategories = (
  db: Queries,
  categories: { slug: string; name: string; parent: string | null }[],
) =>
  db
    .insertInto("categories")
    .values(categories)
    .onConflict((conflict) => conflict.column("slug").doNothing())
    .execute();
