import { type RawBuilder, sql } from "kysely";
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
  const section = sql`(select coalesce(parent, slug) from categories where slug = ${category})`;
  await sql`
    insert into listings (product_id, author_id, status, type, category, section, lang, currency, price_minor,
                          compatibility, tags, title, created_at, updated_at, published_at, purchases, views,
                          rating_mean, rating_score, trending)
    select ${id}, ${authorId}, ${status}, ${type}, ${category}, ${section}, ${lang}, ${currency}, ${priceMinor}, ${compatibility},
           ${tags}, ${title}, ${createdAt}, ${updatedAt}, ${publishedAt}, s.purchases, s.views, s.rating_mean,
           s.rating_score, s.trending
      from (select * from product_stats where product_id = ${id} for update) s
    on conflict (product_id) do update set
           status = excluded.status, category = excluded.category, section = excluded.section, lang = excluded.lang,
           currency = excluded.currency, price_minor = excluded.price_minor, compatibility = excluded.compatibility,
           tags = excluded.tags, title = excluded.title, updated_at = excluded.updated_at,
           published_at = excluded.published_at, purchases = excluded.purchases, views = excluded.views,
           rating_mean = excluded.rating_mean, rating_score = excluded.rating_score, trending = excluded.trending`.execute(
    tx,
  );
  await sql`
    insert into search_documents (product_id, published, purchases, section, category, search)
    select l.product_id, l.status = 'published', l.purchases, l.section, l.category, ${search}::tsvector
      from listings l where l.product_id = ${id}
    on conflict (product_id) do update set
           published = excluded.published, purchases = excluded.purchases, section = excluded.section,
           category = excluded.category, search = excluded.search`.execute(tx);
}

/** Those that are new; what is for sale makes known words of those that were only in drawers. */
export function writeWords(tx: Tx, words: string[], isForSale: boolean): Promise<unknown> {
  const listings = isForSale ? 1 : 0;
  return sql`
    insert into search_words (word, listings)
    select w.word, ${listings} from unnest(${words}::text[]) as w (word)
     where not exists (select from search_words s where s.word = w.word and s.listings >= ${listings})`.execute(
    tx,
  );
}

export const hasCategory = async (db: Queries, slug: string): Promise<boolean> =>
  (await db.selectFrom("categories").select("slug").where("slug", "=", slug).executeTakeFirst()) !==
  undefined;

export async function isTopLevel(db: Queries, slug: string): Promise<boolean> {
  const top = db.selectFrom("categories").select("slug").where("slug", "=", slug).where("parent", "is", null);
  return (await top.executeTakeFirst()) !== undefined;
}

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
    select c.slug, c.name, c.parent, coalesce(sum(f.products), 0)::bigint as products
      from categories c
      left join categories below on below.slug = c.slug or below.parent = c.slug
      left join facet_counts f on f.category = below.slug
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
  moveSales(tx, productId, {
    by: 1,
    trending: sql`greatest(trending, ${at}::float8) + ln(1 + power(2, -least(abs(trending - ${at}::float8), 200))) / ln(2)`,
  });

/**
 * Takes 2^at out of the sum again. What remains of a sum far smaller than what is taken is lost in its rounding: below
 * 2^-30 of it, what remains is put at 2^-30.
 */
export const takeSale = (tx: Tx, productId: string, at: number) =>
  moveSales(tx, productId, {
    by: -1,
    trending: sql`case when purchases <= 1 then 0
                       else trending + ln(greatest(1 - power(2, greatest(least(${at}::float8 - trending, 0), -200)), power(2, -30))) / ln(2)
                   end`,
  });

const moveSales = (
  tx: Tx,
  productId: string,
  { by, trending }: { by: 1 | -1; trending: RawBuilder<unknown> },
) =>
  sql`
    with counted as (
      update product_stats set purchases = purchases + ${by}, trending = ${trending}
       where product_id = ${productId}
      returning product_id, purchases, trending),
    listed as (
      update listings l set purchases = c.purchases, trending = c.trending
        from counted c where l.product_id = c.product_id)
    update search_documents d set purchases = c.purchases
      from counted c where d.product_id = c.product_id`.execute(tx);

/** The only statement that moves ratings: the counters and their copy in the listing, by the same difference. */
export const addRating = (tx: Tx, productId: string, { count, sum }: { count: number; sum: number }) =>
  sql`
    with counted as (
      update product_stats set rating_sum = rating_sum + ${sum}, rating_count = rating_count + ${count}
       where product_id = ${productId}
      returning product_id, rating_mean, rating_score)
    update listings l set rating_mean = c.rating_mean, rating_score = c.rating_score
      from counted c where l.product_id = c.product_id`.execute(tx);

/** The salt of a day, made at its first view on whichever node; null: the day is closed. */
export async function findSalt(db: Queries, day: string, sealedSalt: string): Promise<string | null> {
  await sql`insert into view_days (day, sealed_salt) values (${day}, ${sealedSalt}) on conflict do nothing`.execute(
    db,
  );
  const { rows } = await sql<{ salt: string | null }>`
    select sealed_salt as salt from view_days where day = ${day}`.execute(db);
  return rows[0]!.salt;
}

export interface ViewRow {
  productId: string;
  day: string;
  viewer: Buffer;
}

/**
 * Keeps the views that are new and adds them to the counters, in one statement for all of them. Of a day that was
 * closed and a product that went there are none. Rows are locked in the order of ids, so that no two writers can wait
 * for each other; and the day is shared, so that nobody closes it meanwhile.
 */
export const addViews = (db: Queries, views: ViewRow[]) =>
  sql`
    with open as (
      select day from view_days
       where day = any (${[...new Set(views.map((view) => view.day))]}::date[]) and sealed_salt is not null
       order by day for share),
    seen as (
      insert into product_views (day, product_id, viewer)
      select v.* from unnest(${views.map((view) => view.day)}::date[],
                             ${views.map((view) => view.productId)}::uuid[],
                             ${views.map((view) => view.viewer)}::bytea[]) as v (day, product_id, viewer)
        join open on open.day = v.day
        join products p on p.id = v.product_id
       order by v.day, v.product_id, v.viewer
      on conflict do nothing returning product_id, day),
    fresh as materialized (select product_id, day, count(*) as views from seen group by product_id, day),
    locked as materialized (
      select product_id from product_stats where product_id in (select product_id from fresh)
       order by product_id for no key update),
    counted as (
      update product_stats s set views = s.views + n.views
        from locked l
        join (select product_id, sum(views)::bigint as views from fresh group by product_id) n
             on n.product_id = l.product_id
       where s.product_id = l.product_id
      returning s.product_id, s.views),
    days as (
      insert into product_days as d (product_id, day, views)
      select f.product_id, f.day, f.views from fresh f join counted c on c.product_id = f.product_id
      on conflict (product_id, day) do update set views = d.views + excluded.views)
    -- A listing moves in every one of its indexes: the order follows by hundredths.
    update listings l set views = c.views from counted c
     where l.product_id = c.product_id and c.views > l.views + l.views / 100`.execute(db);

/** Adds up the rows that share everything, once there are many: in one statement, so that nothing is counted twice. */
export async function foldCounts(db: Queries, from: number): Promise<void> {
  await sql`
    with gone as (
      delete from facet_counts where (select count(*) from facet_counts where not folded) >= ${from} returning *)
    insert into facet_counts
    select type, category, compatibility, currency, price_band, rating_band, sum(products), true
      from gone group by 1, 2, 3, 4, 5, 6 having sum(products) <> 0`.execute(db);
  await sql`
    with gone as (
      delete from tag_counts where (select count(*) from tag_counts where not folded) >= ${from} returning *)
    insert into tag_counts select tag, sum(products), true from gone group by 1 having sum(products) <> 0`.execute(
    db,
  );
}

export async function countListings(db: Queries): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select coalesce(sum(products), 0)::bigint as total from facet_counts`.execute(db);
  return rows[0]!.total;
}

/** Words of new listings count once; this tells how common each is, by a sample of what is for sale. */
export async function weighWords(db: Queries, percent: number): Promise<void> {
  const sample = `select search from search_documents tablesample system (${percent}) where published`;
  await sql`
    with weighed as materialized (
      select word, ceil(ndoc * 100 / ${percent}::float8)::int as listings from ts_stat(${sample})
       where length(word) >= 3),
    gone as (delete from search_words s using weighed w where s.word = w.word)
    insert into search_words (word, listings) select word, listings from weighed`.execute(db);
}

export interface TagQuery extends Paging {
  search?: string | undefined;
}

/** Those that begin with what is searched for, the commonest first. */
export async function listTags(db: Queries, { search, ...paging }: TagQuery) {
  const tags = sql`
    select tag, sum(products)::bigint as products from tag_counts
     where starts_with(tag, ${search?.toLowerCase() ?? ""}) group by tag having sum(products) > 0`;
  const [{ rows: items }, { rows: counted }] = await Promise.all([
    sql<{ tag: string; products: number }>`
      ${tags} order by products desc, tag limit ${paging.limit} offset ${offsetOf(paging)}`.execute(db),
    sql<{ total: number }>`select count(*) as total from (${tags}) t`.execute(db),
  ]);
  return { items, total: counted[0]!.total } satisfies Page<unknown>;
}

/** Takes away the salt of the days before this one: nobody can tell any more whose views they are. */
export const closeDays = (db: Queries, before: string) =>
  sql`update view_days set sealed_salt = null where day < ${before} and sealed_salt is not null`.execute(db);

export async function deleteViewers(db: Queries, before: string, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from product_views where (day, product_id, viewer) in (
      select v.day, v.product_id, v.viewer from product_views v where v.day < ${before}
       order by v.day, v.product_id, v.viewer limit ${limit})`.execute(db);
  return Number(numAffectedRows ?? 0n);
}

export const insertCategories = (
  db: Queries,
  categories: { slug: string; name: string; parent: string | null }[],
) =>
  db
    .insertInto("categories")
    .values(categories)
    .onConflict((conflict) => conflict.column("slug").doNothing())
    .execute();
