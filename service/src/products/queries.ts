import type { ProductStatus, Variable } from "@stoa/contract";
import { sql } from "kysely";
import type { Context } from "../context.ts";
import type { Queries, Tx } from "../db/database.ts";
import type { StoredFile, StoredImage } from "./attachments.ts";

export interface VersionRow {
  version: string;
  content: string;
  contentFormat: "text" | "messages";
  variables: Variable[];
  changelog: string;
  files: StoredFile[];
}

export interface ProductRow {
  id: string;
  authorId: string;
  authorName: string;
  authorVerified: boolean;
  authorBio: string;
  authorClosedAt: Date | null;
  refundDays: number;
  title: string;
  description: string;
  lang: string | null;
  type: string;
  status: ProductStatus;
  category: string | null;
  priceMinor: number;
  currency: string;
  compatibility: string[];
  tags: string[];
  requirements: string[];
  features: string[];
  models: Record<string, string>;
  preview: string;
  images: StoredImage[];
  revision: number;
  createdAt: Date;
  updatedAt: Date;
  publishedAt: Date | null;
  firstPublishedAt: Date | null;
}

export interface ProductForReader extends ProductRow, VersionRow {
  latestVersion: string;
  views: number;
  purchases: number;
  ratingSum: number;
  ratingCount: number;
  entitled: boolean;
  usedAt: Date | null;
}

const PRODUCT_COLUMNS = `p.id, p.author_id as "authorId", u.name as "authorName", u.verified as "authorVerified",
  u.bio as "authorBio", u.closed_at as "authorClosedAt", u.refund_days as "refundDays", p.title, p.description, p.lang, p.type, p.status, p.category,
  p.price_minor as "priceMinor", p.currency, p.compatibility, p.tags, p.requirements, p.features, p.models, p.preview, p.images,
  p.revision, p.created_at as "createdAt", p.updated_at as "updatedAt", p.published_at as "publishedAt",
  p.first_published_at as "firstPublishedAt"`;

/**
 * A product as one reader gets it, in one round trip: what they bought decides which version they see. A buyer
 * gets the newest version of the major line that was bought, everybody else the newest of all.
 */
const FIND_PRODUCT = {
  name: "find_product_for_reader",
  text: `
  select ${PRODUCT_COLUMNS}, s.views, s.purchases, s.rating_sum as "ratingSum", s.rating_count as "ratingCount",
         p.version as "latestVersion", v.version, v.content, v.content_format as "contentFormat", v.variables,
         v.changelog, v.files, e.order_id is not null as entitled, e.used_at as "usedAt"
    from products p
    join users u on u.id = p.author_id
    join product_stats s on s.product_id = p.id
    left join entitlements e on e.product_id = p.id and e.buyer_id = $2 and e.status = 'active'
    join lateral (
      select * from product_versions v
       where v.product_id = p.id and (e.major is null or p.author_id = $2 or v.numbers[1] = e.major)
       order by v.numbers desc limit 1) v on true
   where p.id = $1`,
};

export async function findProductForReader({ pool }: Context, id: string, readerId: string | null) {
  const { rows } = await pool.query<ProductForReader>({ ...FIND_PRODUCT, values: [id, readerId] });
  return rows[0];
}

/**
 * Locks the product, then reads it with its newest version: two changes of it cannot both start from the same state.
 * Two statements, because one that had to wait for its lock goes on with the versions of before it waited.
 */
export async function lockProduct(tx: Tx, id: string): Promise<(ProductRow & VersionRow) | undefined> {
  await sql`select from products where id = ${id} for update`.execute(tx);
  const { rows } = await sql<ProductRow & VersionRow>`
    select ${sql.raw(PRODUCT_COLUMNS)}, v.version, v.content, v.content_format as "contentFormat", v.variables,
           v.changelog, v.files
      from products p
      join users u on u.id = p.author_id
      join product_versions v on v.product_id = p.id and v.version = p.version
     where p.id = ${id}`.execute(tx);
  return rows[0];
}

/** All of an author's, with their newest versions; one that is just being published is waited for. */
export async function lockProductsOf(tx: Tx, authorId: string): Promise<(ProductRow & VersionRow)[]> {
  await sql`select from products where author_id = ${authorId} order by id for update`.execute(tx);
  const { rows } = await sql<ProductRow & VersionRow>`
    select ${sql.raw(PRODUCT_COLUMNS)}, v.version, v.content, v.content_format as "contentFormat", v.variables,
           v.changelog, v.files
      from products p
      join users u on u.id = p.author_id
      join product_versions v on v.product_id = p.id and v.version = p.version
     where p.author_id = ${authorId} order by p.id`.execute(tx);
  return rows;
}

/** Locks nothing, but sees what a purchase has to know. */
export async function findForSale(db: Queries, id: string) {
  const { rows } = await sql<ProductRow & { version: string }>`
    select ${sql.raw(PRODUCT_COLUMNS)}, p.version from products p join users u on u.id = p.author_id
     where p.id = ${id}`.execute(db);
  return rows[0];
}

/** The version that a caller may run: a pinned one of their line, else the line's newest. */
export async function findVersion(
  db: Queries,
  productId: string,
  which: { major: number | null; pinned: string | undefined },
) {
  const { rows } = await sql<VersionRow>`
    select version, content, content_format as "contentFormat", variables, changelog, files
      from product_versions
     where product_id = ${productId}
       and (${which.major}::int is null or numbers[1] = ${which.major})
       and (${which.pinned ?? null}::text is null or version = ${which.pinned ?? null})
     order by numbers desc limit 1`.execute(db);
  return rows[0];
}

export interface ProductValues {
  title: string;
  description: string;
  lang: string | null;
  category: string | null;
  price_minor: number;
  currency: string;
  compatibility: string[];
  tags: string[];
  requirements: string[];
  features: string[];
  models: string;
  preview: string;
  images: string;
  version: string;
  card: string;
}

export async function insertProduct(
  tx: Tx,
  product: ProductValues & { id: string; author_id: string; type: string; created_at: Date },
): Promise<void> {
  await tx
    .insertInto("products")
    .values({ ...product, status: "draft", updated_at: product.created_at })
    .execute();
  await tx.insertInto("product_stats").values({ product_id: product.id }).execute();
}

export const updateProduct = (tx: Tx, id: string, values: ProductValues, now: Date) =>
  tx
    .updateTable("products")
    .set((row) => ({ ...values, updated_at: now, revision: row("revision", "+", 1) }))
    .where("id", "=", id)
    .execute();

const numbersOf = (version: string) => version.split(".").map(Number);

export const insertVersion = (tx: Tx, productId: string, version: VersionRow, now: Date) =>
  tx
    .insertInto("product_versions")
    .values({
      product_id: productId,
      version: version.version,
      numbers: numbersOf(version.version),
      content: version.content,
      content_format: version.contentFormat,
      variables: JSON.stringify(version.variables),
      changelog: version.changelog,
      files: JSON.stringify(version.files),
      created_at: now,
    })
    .execute();

/** Only of a product that was never published: a version that somebody may have bought is never rewritten. */
export async function replaceVersion(tx: Tx, productId: string, old: string, version: VersionRow, now: Date) {
  await tx
    .deleteFrom("product_versions")
    .where("product_id", "=", productId)
    .where("version", "=", old)
    .execute();
  await insertVersion(tx, productId, version, now);
}

export async function setStatus(
  tx: Tx,
  id: string,
  status: { status: ProductStatus; card: string },
  now: Date,
): Promise<void> {
  const published = status.status === "published";
  await tx
    .updateTable("products")
    .set((row) => ({
      ...status,
      updated_at: now,
      revision: row("revision", "+", 1),
      ...(published && {
        published_at: now,
        first_published_at: row.fn.coalesce("first_published_at", row.val(now)),
      }),
      ...(status.status === "deleted" && { deleted_at: now }),
    }))
    .where("id", "=", id)
    .execute();
}

/** Gives all of an author's cards another end, whatever state they are in: their name stands there. */
export const replaceAuthor = (tx: Tx, authorId: string, card: { begins: string; end: string }) =>
  sql`
    update products set card = split_part(card, ${card.begins}, 1) || ${card.end}, revision = revision + 1
     where author_id = ${authorId}`.execute(tx);
