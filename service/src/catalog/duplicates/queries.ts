import type { ProductStatus } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

export interface FingerprintRow {
  productId: string;
  createdAt: Date;
  bands: number[];
  signature: Buffer;
  titleKeys: number[];
}

/** A newer fingerprint stays. */
export const upsertFingerprint = (db: Queries, row: FingerprintRow) =>
  db
    .insertInto("productFingerprints")
    .values(row)
    .onConflict((conflict) =>
      conflict
        .column("productId")
        .doUpdateSet(row)
        .where("productFingerprints.createdAt", "<=", row.createdAt),
    )
    .execute();

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

/** The version that buyers get. Undefined: never published. */
export const findFingerprinted = async (db: Queries, id: string): Promise<FingerprintedProduct | undefined> =>
  (await listFingerprinted(db, [id]))[0];

export async function listFingerprinted(db: Queries, ids: string[]): Promise<FingerprintedProduct[]> {
  const { rows } = await sql<FingerprintedProduct>`
    select p.id, p.author_id as "authorId", p.type, p.title, p.status, v.content,
           v.content_format as "contentFormat", p.first_published_at as "firstPublishedAt", l.purchases
      from products p
      join product_versions v on v.product_id = p.id and v.numbers = p.released
      join listings l on l.product_id = p.id
     where p.id = any (${ids}::uuid[]) and p.first_published_at is not null`.execute(db);
  return rows;
}

/** Products that share a band. Of a text that thousands copied, any of them will do. */
export async function listByBands(
  db: Queries,
  bands: number[],
  { except, limit }: { except: string; limit: number },
): Promise<{ productId: string; signature: Buffer }[]> {
  const { rows } = await sql<{ productId: string; signature: Buffer }>`
    select product_id as "productId", signature from product_fingerprints
     where bands && ${bands}::int[] and product_id <> ${except} limit ${limit}`.execute(db);
  return rows;
}

export interface TitleRow {
  productId: string;
  title: string;
}

/** Products on sale of other sellers that sold more. The best sellers first: they are what a look-alike imitates. */
export async function listByTitleKeys(
  db: Queries,
  keys: number[],
  { authorId, purchases, limit }: { authorId: string; purchases: number; limit: number },
): Promise<TitleRow[]> {
  const { rows } = await sql<TitleRow>`
    select l.product_id as "productId", l.title
      from product_fingerprints f join listings l on l.product_id = f.product_id
     where f.title_keys && ${keys}::int[] and l.status = 'published' and l.author_id <> ${authorId}
       and l.purchases > ${purchases}
     order by l.purchases desc, l.product_id limit ${limit}`.execute(db);
  return rows;
}

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
