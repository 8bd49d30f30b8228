import type { ProductStatus } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";

export interface FingerprintRow {
  productId: string;
  bands: number[];
  signature: Buffer;
  titleKeys: number[];
}

/** In order of id to avoid deadlocks. A newer fingerprint stays. */
export const upsertFingerprints = (db: Queries, createdAt: Date, rows: FingerprintRow[]) =>
  sql`${prepared("upsert_fingerprints")}
    insert into product_fingerprints as f (product_id, created_at, bands, signature, title_keys)
    select "productId", ${createdAt}::timestamptz, bands, decode(signature, 'hex'), "titleKeys"
      from json_to_recordset(${JSON.stringify(rows.map(toHexRow))}::json) as given (
           "productId" uuid, bands int[], signature text, "titleKeys" int[])
     order by 1
    on conflict (product_id) do update set
           created_at = excluded.created_at, bands = excluded.bands, signature = excluded.signature,
           title_keys = excluded.title_keys
     where f.created_at <= excluded.created_at`.execute(db);

const toHexRow = (row: FingerprintRow) => ({ ...row, signature: row.signature.toString("hex") });

export interface FingerprintedProduct {
  id: string;
  authorId: string;
  type: string;
  title: string;
  status: ProductStatus;
  content: string;
  contentFormat: "text" | "messages";
  firstPublishedAt: Date;
  purchases: number;
}

/** The versions that buyers get. Leaves out products that were never published. */
export async function listFingerprinted(db: Queries, ids: string[]): Promise<FingerprintedProduct[]> {
  if (ids.length === 0) return [];
  const { rows } = await sql<FingerprintedProduct>`${prepared("list_fingerprinted")}
    select p.id, p.author_id as "authorId", p.type, p.title, p.status, v.content,
           v.content_format as "contentFormat", p.first_published_at as "firstPublishedAt", l.purchases
      from products p
      join product_versions v on v.product_id = p.id and v.numbers = p.released
      join listings l on l.product_id = p.id
     where p.id = any (${ids}::uuid[]) and p.first_published_at is not null`.execute(db);
  return rows;
}

export interface BandMatch {
  /** The index of the bands in the question. */
  nth: number;
  productId: string;
  signature: Buffer;
}

/**
 * For each of the given bands, products that share one. Of a text that thousands copied, any of them will do. `offset 0`: the limit must not
 * lead to a plan that reads all products.
 */
export async function listByBands(
  db: Queries,
  asked: { bands: number[]; ownId: string }[],
  limit: number,
): Promise<BandMatch[]> {
  if (asked.length === 0) return [];
  const { rows } = await sql<BandMatch>`${prepared("list_by_bands")}
    select q.nth, m.product_id as "productId", m.signature
      from json_to_recordset(${toNumberedRows(asked)}::json) as q (nth int, bands int[], "ownId" uuid)
     cross join lateral (
       select f.product_id, f.signature
         from (select product_id, signature from product_fingerprints where bands && q.bands offset 0) f
        where f.product_id <> q."ownId" limit ${limit}) m`.execute(db);
  return rows;
}

export interface TitleMatch {
  /** The index of the title in the question. */
  nth: number;
  productId: string;
  title: string;
}

/**
 * For each of the given titles, products on sale of other sellers that sold more. The best sellers first: they are what a look-alike
 * imitates. `offset 0`: the order must not lead to a plan that reads all listings.
 */
export async function listByTitleKeys(
  db: Queries,
  asked: { keys: number[]; authorId: string; purchases: number }[],
  limit: number,
): Promise<TitleMatch[]> {
  if (asked.length === 0) return [];
  const { rows } = await sql<TitleMatch>`${prepared("list_by_title_keys")}
    select q.nth, m.product_id as "productId", m.title
      from json_to_recordset(${toNumberedRows(asked)}::json) as q (nth int, keys int[], "authorId" uuid, purchases bigint)
     cross join lateral (
       select l.product_id, l.title, l.purchases
         from (select product_id from product_fingerprints where title_keys && q.keys offset 0) f
        cross join lateral (
          select product_id, title, purchases from listings
           where product_id = f.product_id and status = 'published' and author_id <> q."authorId"
             and purchases > q.purchases offset 0) l
        order by l.purchases desc, l.product_id limit ${limit}) m
     order by q.nth, m.purchases desc, m.product_id`.execute(db);
  return rows;
}

const toNumberedRows = (rows: object[]) => JSON.stringify(rows.map((row, nth) => ({ ...row, nth })));

/** The next products on sale after `after`, with whether they have a fingerprint. */
export async function listFingerprintStates(
  db: Queries,
  after: string,
  limit: number,
): Promise<{ id: string; isFingerprinted: boolean }[]> {
  const { rows } = await sql<{ id: string; isFingerprinted: boolean }>`
    select l.product_id as id,
           exists (select from product_fingerprints f where f.product_id = l.product_id) as "isFingerprinted"
      from listings l where l.status = 'published' and l.product_id > ${after}
     order by l.product_id limit ${limit}`.execute(db);
  return rows;
}
