import { renderCard } from "@stoa/service/catalog/search/card.ts";
import { RATING_EDGES } from "@stoa/service/catalog/search/facet-cells.ts";
import {
  compactFacetCounts,
  updateWordFrequencies,
} from "@stoa/service/catalog/search/search-maintenance.ts";
import { toTsVector } from "@stoa/service/catalog/search/search-terms.ts";
import { MIN_INDEXED_CHARACTERS, normalizeText } from "@stoa/service/catalog/search/tokenizer.ts";
import type { Context } from "@stoa/service/core/context.ts";
import { SCANNER_VERSION } from "@stoa/service/formats/content-scan/scan.ts";
import { type Connection, createClient } from "@stoa/service/platform/db/database.ts";
import type pg from "pg";
import { copyInto } from "./copy.ts";
import type { MadeProduct } from "./products.ts";

const BATCH = 10_000;
/** Each merge writes all counts again, so it runs only this often. */
const BATCHES_PER_FOLD = 10;

/**
 * Writes products by COPY in batches, since the rooms' functions would take hours. Secondary indexes are created after
 * the last batch. Cards and vectors come from the rooms, the triggers count, and the maintenance jobs run here.
 */
export async function load(
  ctx: Context,
  connection: Connection,
  products: Iterable<MadeProduct>,
): Promise<void> {
  const client = await connect(connection);
  try {
    const sections = await readSections(client);
    const indexes = await dropIndexes(client);
    // The next batch is generated during the write of this one.
    let writing = Promise.resolve();
    let written = 0;
    for (const batch of inBatches(products)) {
      const rows = rowsOf(batch, sections);
      await writing;
      if (written++ % BATCHES_PER_FOLD === 0) await compactFacetCounts(ctx);
      writing = write(client, rows);
    }
    await writing;
    await compactFacetCounts(ctx);
    await client.query("vacuum (full) facet_counts, tag_counts");
    await writeWords(client);
    for (const definition of indexes) await client.query(definition);
    await client.query("vacuum (freeze, analyze)");
    await updateWordFrequencies(ctx);
    await client.query("vacuum (analyze) search_words");
  } finally {
    await client.end();
  }
}

async function connect(connection: Connection): Promise<pg.Client> {
  const client = createClient(connection, { application_name: "stoa bench" });
  await client.connect();
  await client.query("set statement_timeout = 0");
  await client.query("set maintenance_work_mem = '1GB'");
  return client;
}

/** The top-level category of each slug. */
async function readSections(client: pg.Client): Promise<Map<string | null, string>> {
  const { rows } = await client.query<{ slug: string; section: string }>(
    "select slug, coalesce(parent, slug) as section from categories",
  );
  return new Map(rows.map(({ slug, section }) => [slug, section]));
}

/** Drops indexes without constraints. Returns their definitions. */
async function dropIndexes(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
       from pg_index i
      where i.indrelid = any($1::regclass[])
        and not exists (select 1 from pg_constraint c where c.conindid = i.indexrelid)
      order by 1`,
    [Object.keys(COLUMNS)],
  );
  for (const { name } of rows) await client.query(`drop index ${name}`);
  return rows.map(({ definition }) => definition);
}

function* inBatches(products: Iterable<MadeProduct>): Generator<MadeProduct[]> {
  let batch: MadeProduct[] = [];
  for (const product of products) {
    batch.push(product);
    if (batch.length < BATCH) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

const COLUMNS = {
  products:
    "id, author_id, title, description, lang, type, status, category, price_minor, currency, compatibility, tags, requirements, features, models, preview, version, released, card, created_at, updated_at, published_at, first_published_at, moved_at",
  product_versions:
    "product_id, version, numbers, title, description, content, content_format, variables, changelog, created_at",
  product_scans: "product_id, numbers, scanned_at, scanner_version, findings, badges",
  product_stats: "product_id, views, purchases, rating_sum, rating_count, trending",
  listings:
    "product_id, author_id, status, type, category, section, lang, currency, price_minor, compatibility, tags, title, created_at, updated_at, published_at, purchases, views, rating_mean, rating_score, trending",
  search_documents:
    "product_id, published, purchases, type, section, category, lang, currency, price_minor, rating_band, compatibility, tags, search",
  search_words: "word",
};
type Table = keyof typeof COLUMNS;

const FIRST = "{1,0,0}";

function rowsOf(products: MadeProduct[], sections: Map<string | null, string>) {
  const sectionOf = ({ category }: MadeProduct) => sections.get(category) ?? null;
  return {
    products: products.map((p) => [
      ...[p.id, p.authorId, p.title, p.description, p.lang, p.type, p.status, p.category, p.priceMinor],
      ...[
        p.currency,
        p.compatibility,
        p.tags,
        [],
        [],
        "{}",
        "",
        "1.0.0",
        p.publishedAt && FIRST,
        renderCard(p),
      ],
      ...[p.createdAt, p.updatedAt, p.publishedAt, p.publishedAt, p.createdAt],
    ]),
    product_versions: products.map((p) => [
      ...[
        p.id,
        "1.0.0",
        FIRST,
        p.title,
        p.description,
        p.content,
        "text",
        JSON.stringify(p.variables),
        "",
        p.createdAt,
      ],
    ]),
    // Without them, the job that scans outdated versions would run beside every measurement.
    product_scans: products
      .filter(({ status }) => status !== "draft")
      .map((p) => [p.id, FIRST, p.createdAt, SCANNER_VERSION, "[]", []]),
    product_stats: products.map((p) => [
      ...[p.id, p.views, p.purchases, p.ratingSum, p.ratingCount, p.trending],
    ]),
    listings: products.map((p) => [
      ...[p.id, p.authorId, p.status, p.type, p.category, sectionOf(p), p.lang, p.currency, p.priceMinor],
      ...[
        p.compatibility,
        p.tags,
        normalizeText(p.title),
        p.createdAt,
        p.updatedAt,
        p.publishedAt,
        p.purchases,
      ],
      ...[p.views, ...ratingOf(p), p.trending],
    ]),
    search_documents: products.map((p) => [
      ...[p.id, p.status === "published", p.purchases, p.type, sectionOf(p), p.category, p.lang],
      ...[p.currency, p.priceMinor, ratingBandOf(p), p.compatibility, p.tags, toTsVector(p)],
    ]),
  };
}

/** As in product_stats. */
const ratingOf = ({ ratingSum: sum, ratingCount: count }: MadeProduct) => [
  count === 0 ? 0 : sum / count,
  (sum + 35) / (count + 10),
];

const ratingBandOf = (product: MadeProduct) =>
  RATING_EDGES.filter((edge) => ratingOf(product)[0]! >= edge).length;

/** Skips foreign keys, since each batch has both ends. The triggers of listings run. */
async function write(client: pg.Client, rows: ReturnType<typeof rowsOf>): Promise<void> {
  await client.query("set session_replication_role = replica");
  const copy = (table: Exclude<Table, "search_words">) =>
    copyInto(client, table, COLUMNS[table], rows[table]);
  for (const table of ["products", "product_versions", "product_scans", "product_stats"] as const)
    await copy(table);
  await client.query("set session_replication_role = origin");
  await copy("listings");
  await client.query("set session_replication_role = replica");
  await copy("search_documents");
  await client.query("set session_replication_role = origin");
}

/** Stores the frequency of each word in a separate table, for the queries. */
async function writeWords(client: pg.Client): Promise<void> {
  await client.query("create schema bench");
  await client.query(
    `create table bench.words as
     select word, ndoc as listings
       from ts_stat($$select search from search_documents where published$$)`,
  );
  await client.query(
    `insert into search_words (word) select word from bench.words where length(word) >= ${MIN_INDEXED_CHARACTERS}`,
  );
}
