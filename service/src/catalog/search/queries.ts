import { type RawBuilder, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { prepared } from "../../platform/db/prepared.ts";
import { readStatement } from "../../platform/db/statement.ts";
import { MIN_INDEXED_CHARACTERS } from "./tokenizer.ts";

export const CATALOG_CHANNEL = "catalogue";

export const notifyCatalogChanged = (tx: Tx) => sql`select pg_notify(${CATALOG_CHANNEL}, '')`.execute(tx);

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
  /** A `tsvector`. */
  search: string;
}

/** Of those that were evaluated; few products are. */
export const refreshProductScores = (tx: Tx, productIds: string[]) =>
  sql`${prepared("refresh_product_scores")}
    select refresh_product_scores(given.id) from unnest(${productIds}::uuid[]) as given (id)
     where exists (select from evaluations e where e.product_id = given.id offset 0)
        or exists (select from product_scores s where s.product_id = given.id offset 0)`.execute(tx);

/** By word: whether a product that is for sale has it. */
export type ListedWords = ReadonlyMap<string, boolean>;

const writeListingsSql = readStatement<{ listings: string; words: string[]; wordListings: number[] }>(
  new URL("./sql/write-listings.sql", import.meta.url),
);

export const writeListings = (tx: Tx, listings: ListingRow[], words: ListedWords) =>
  writeListingsSql({
    listings: JSON.stringify(listings),
    words: [...words.keys()],
    wordListings: [...words.values()].map(Number),
  }).execute(tx);

/** Replaces the words of weight D, the author's name, in order of product id. `isForSale` is null when no product changed. */
export async function writeAuthorName(
  tx: Tx,
  authorId: string,
  name: string,
): Promise<{ isForSale: boolean | null }> {
  const { rows } = await sql<{ isForSale: boolean | null }>`
    with held as (
      select d.product_id, ts_filter(d.search, '{a,b,c}') || ${name}::tsvector as search
        from search_documents d join listings l on l.product_id = d.product_id
       where l.author_id = ${authorId} order by d.product_id for no key update of d),
    changed as (
      update search_documents d set search = h.search from held h
       where d.product_id = h.product_id and d.search <> h.search
      returning d.published)
    select bool_or(published) as "isForSale" from changed`.execute(tx);
  return firstOf(rows);
}

/** Inserts missing words, as write-listings.sql does. */
export function insertWords(tx: Tx, words: string[], isForSale: boolean): Promise<unknown> {
  const listings = isForSale ? 1 : 0;
  return sql`
    insert into search_words (word, listings)
    select w.word, ${listings} from unnest(${words}::text[]) as w (word)
     where not exists (select from search_words s where s.word = w.word and s.listings >= ${listings})`.execute(
    tx,
  );
}

/** One of the half-life sums of 0002_products.sql: adds 2^at to the sum, which is stored as log2. */
export const addPurchase = (tx: Tx, productId: string, at: number) =>
  movePurchases(tx, productId, {
    by: 1,
    trending: sql`greatest(trending, ${at}::float8) + ln(1 + power(2, -least(abs(trending - ${at}::float8), 200))) / ln(2)`,
  });

/** Subtracts 2^at from the sum. A remainder below 2^-30 of the subtracted value is lost in rounding and is set to 2^-30 of it. */
export const removePurchase = (tx: Tx, productId: string, at: number) =>
  movePurchases(tx, productId, {
    by: -1,
    trending: sql`case when purchases <= 1 then 0
                       else trending + ln(greatest(1 - power(2, greatest(least(${at}::float8 - trending, 0), -200)), power(2, -30))) / ln(2)
                   end`,
  });

const movePurchases = (
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

/**
 * The only statement that changes ratings: in product_stats and in the listing's copy, by the same difference. The document is
 * written if the band changes, which the locked row of product_stats decides, so that no concurrent rating is lost. PostgreSQL runs
 * `listed` last, since nothing reads it: the document is locked before the listing, as in movePurchases.
 */
export const addRating = (tx: Tx, productId: string, { count, sum }: { count: number; sum: number }) =>
  sql`
    with counted as (
      update product_stats set rating_sum = rating_sum + ${sum}, rating_count = rating_count + ${count}
       where product_id = ${productId}
      returning product_id, rating_mean, rating_score, stoa_rating_band(rating_mean) as band,
                stoa_rating_band(coalesce((rating_sum - ${sum})::float8 / nullif(rating_count - ${count}, 0), 0)) as band_before),
    listed as (
      update listings l set rating_mean = c.rating_mean, rating_score = c.rating_score
        from counted c where l.product_id = c.product_id)
    update search_documents d set rating_band = c.band
      from counted c where d.product_id = c.product_id and c.band <> c.band_before`.execute(tx);

/** Merges the rows of a cell once there are many. One statement, so that nothing is counted twice. */
export async function compactCounts(db: Queries, from: number): Promise<void> {
  await sql`
    with gone as (
      delete from facet_counts
       where not compacted and (select count(*) from facet_counts where not compacted) >= ${from} returning *)
    insert into facet_counts as f
    select provider, type, category, currency, price_band, rating_band, sum(products), true
      from gone group by 1, 2, 3, 4, 5, 6 having sum(products) <> 0 order by 1, 2, 3, 4, 5, 6
    on conflict (provider, type, category, currency, price_band, rating_band) where compacted
    do update set products = f.products + excluded.products`.execute(db);
  await sql`
    with gone as (
      delete from tag_counts
       where not compacted and (select count(*) from tag_counts where not compacted) >= ${from} returning *)
    insert into tag_counts as t
    select tag, sum(products), true from gone group by 1 having sum(products) <> 0 order by 1
    on conflict (tag) where compacted do update set products = t.products + excluded.products`.execute(db);
  await sql`
    with gone as (
      delete from score_counts
       where not compacted and (select count(*) from score_counts where not compacted) >= ${from} returning *)
    insert into score_counts as s
    select model, pass_band, sum(products), true from gone group by 1, 2 having sum(products) <> 0 order by 1, 2
    on conflict (model, pass_band) where compacted do update set products = s.products + excluded.products`.execute(
    db,
  );
  await sql`delete from facet_counts where compacted and products = 0`.execute(db);
  await sql`delete from tag_counts where compacted and products = 0`.execute(db);
  await sql`delete from score_counts where compacted and products = 0`.execute(db);
}

export async function countListings(db: Queries): Promise<number> {
  const { rows } = await sql<{ total: number }>`
    select coalesce(sum(products), 0)::bigint as total from facet_counts where provider is null`.execute(db);
  return firstOf(rows).total;
}

/** Estimates word frequencies from a sample of published products; words of new listings start at one. */
export async function writeWordFrequencies(db: Queries, percent: number): Promise<void> {
  const sample = `select search from search_documents tablesample system (${percent}) where published`;
  await sql`
    with weighed as materialized (
      select word, ceil(ndoc * 100 / ${percent}::float8)::int as listings from ts_stat(${sample})
       where length(word) >= ${MIN_INDEXED_CHARACTERS}),
    gone as (delete from search_words s using weighed w where s.word = w.word)
    insert into search_words (word, listings) select word, listings from weighed`.execute(db);
}

export interface TagQuery extends Paging {
  search?: string | undefined;
}

/** By prefix, the most frequent first. */
export async function listTags(db: Queries, { search, ...paging }: TagQuery) {
  const tags = sql`
    select tag, sum(products)::bigint as products from tag_counts
     where starts_with(tag, ${search?.toLowerCase() ?? ""}) group by tag having sum(products) > 0`;
  const [{ rows: items }, { rows: counted }] = await Promise.all([
    sql<{ tag: string; products: number }>`
      ${tags} order by products desc, tag limit ${paging.limit} offset ${offsetOf(paging)}`.execute(db),
    sql<{ total: number }>`select count(*) as total from (${tags}) t`.execute(db),
  ]);
  return { items, total: firstOf(counted).total } satisfies Page<unknown>;
}
