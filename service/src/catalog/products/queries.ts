import type { ProductStatus, ScanBadge, SuspensionReason, Variable } from "@stoa/contract";
import { CompiledQuery, sql } from "kysely";
import type { Context } from "../../core/context.ts";
import { dayOf } from "../../core/dates.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { sendInOrder } from "../../platform/db/pipeline.ts";
import { PREPARED_MARK, prepared } from "../../platform/db/prepared.ts";
import { readStatement } from "../../platform/db/statement.ts";
import type { Approval } from "./approved-details.ts";
import type { StoredFile, StoredImage } from "./attachments.ts";
import type { StoredSample } from "./samples.ts";
import { parseVersion } from "./semantic-version.ts";
import type { StoredTryOut } from "./try-out-summary.ts";

export interface VersionRow {
  version: string;
  content: string;
  contentFormat: "text" | "messages";
  variables: Variable[];
  changelog: string;
  acknowledgesRegression: boolean;
  files: StoredFile[];
}

/** The last rejection or suspension; all null: none. */
export interface ModerationDecision {
  moderationCode: SuspensionReason | null;
  moderationReason: string | null;
  moderatedAt: Date | null;
}

export interface ProductRow extends ModerationDecision {
  id: string;
  authorId: string;
  authorName: string;
  authorVerified: boolean;
  authorHandle: string | null;
  authorAvatar: string | null;
  authorBio: string;
  authorClosedAt: Date | null;
  authorBannedAt: Date | null;
  refundDays: number;
  title: string;
  description: string;
  lang: string | null;
  type: string;
  status: ProductStatus;
  category: string | null;
  priceMinor: number;
  currency: string;
  /** null: the author's default applies. */
  commissionBasisPoints: number | null;
  authorsCommissionBasisPoints: number;
  compatibility: string[];
  tags: string[];
  requirements: string[];
  features: string[];
  license: string | null;
  models: Record<string, string>;
  preview: string;
  images: StoredImage[];
  revision: number;
  createdAt: Date;
  updatedAt: Date;
  publishedAt: Date | null;
  firstPublishedAt: Date | null;
  /** The newest version for buyers, as numbers; null: never published. */
  released: number[] | null;
}

/** With the newest version, unless a query says otherwise. */
export interface ProductWithVersion extends ProductRow, VersionRow {
  samples: StoredSample[];
}

export interface ProductForReader extends ProductWithVersion {
  /** When the reader's version was created. */
  versionDescription: string;
  latestVersion: string;
  views: number;
  purchases: number;
  ratingSum: number;
  ratingCount: number;
  entitled: boolean;
  usedAt: Date | null;
  scannedAt: Date | null;
  scannerVersion: string | null;
  scanBadges: ScanBadge[] | null;
  /** null: the product cannot be tried. */
  tryOut: StoredTryOut | null;
}

const PRODUCT_COLUMNS = `p.id, p.author_id as "authorId", u.name as "authorName", u.verified as "authorVerified",
  u.handle as "authorHandle", u.avatar as "authorAvatar",
  u.bio as "authorBio", u.closed_at as "authorClosedAt", u.banned_at as "authorBannedAt",
  u.refund_days as "refundDays", p.title, p.description, p.lang, p.type, p.status, p.category,
  p.price_minor as "priceMinor", p.currency, p.commission_basis_points as "commissionBasisPoints",
  u.commission_basis_points as "authorsCommissionBasisPoints", p.compatibility, p.tags, p.requirements, p.features,
  p.license, p.models, p.preview, p.images,
  p.revision, p.created_at as "createdAt", p.updated_at as "updatedAt", p.published_at as "publishedAt",
  p.first_published_at as "firstPublishedAt", p.released, p.moderation_code as "moderationCode",
  p.moderation_reason as "moderationReason", p.moderated_at as "moderatedAt"`;

/** The columns that a new version copies. */
const VERSION_COLUMNS = `v.version, v.content, v.content_format as "contentFormat", v.variables, v.changelog,
  v.acknowledges_regression as "acknowledgesRegression", v.files`;

/**
 * A product as one reader gets it, in one round trip. A buyer gets the newest released version of the bought major line,
 * others the newest version.
 */
const FIND_PRODUCT = `${PREPARED_MARK}find_product_for_reader
  select ${PRODUCT_COLUMNS}, s.views, s.purchases, s.rating_sum as "ratingSum", s.rating_count as "ratingCount",
         p.version as "latestVersion", p.samples, ${VERSION_COLUMNS}, v.description as "versionDescription",
         (select jsonb_build_object('model', t.model, 'isSandbox', t.provider_key_id is null,
                   'perVisitor', t.max_per_visitor_per_day, 'leftToday', greatest(0, t.max_per_day - coalesce(d.tries, 0)))
            from try_outs t left join try_out_days d on d.product_id = t.product_id and d.day = $3
           where t.product_id = p.id) as "tryOut",
         e.order_id is not null as entitled, e.used_at as "usedAt",
         c.scanned_at as "scannedAt", c.scanner_version as "scannerVersion", c.badges as "scanBadges"
    from products p
    join users u on u.id = p.author_id
    join product_stats s on s.product_id = p.id
    left join entitlements e on e.product_id = p.id and e.buyer_id = $2 and e.status = 'active'
    join lateral (
      select * from product_versions v
       where v.product_id = p.id
         and (e.major is null or p.author_id = $2 or v.numbers[1] = e.major and v.numbers <= p.released)
       order by v.numbers desc limit 1) v on true
    left join product_scans c on c.product_id = p.id and c.numbers = v.numbers
   where p.id = $1`;

export async function findProductForReader(
  { pool, now }: Context,
  id: string,
  readerId: string | null,
): Promise<ProductForReader | undefined> {
  const { rows } = await pool.query<ProductForReader>(FIND_PRODUCT, [id, readerId, dayOf(now())]);
  return rows[0];
}

/** As the transaction has changed it. */
export async function findChangedProduct(
  { now }: Context,
  tx: Tx,
  id: string,
  readerId: string,
): Promise<ProductForReader> {
  const query = CompiledQuery.raw(FIND_PRODUCT, [id, readerId, dayOf(now())]);
  const { rows } = await tx.executeQuery<ProductForReader>(query as CompiledQuery<ProductForReader>);
  return firstOf(rows);
}

const PRODUCTS_WITH_VERSION = sql.raw(`
  select ${PRODUCT_COLUMNS}, p.samples, ${VERSION_COLUMNS}
    from products p
    join users u on u.id = p.author_id
    join product_versions v on v.product_id = p.id and v.version = p.version`);

/**
 * Locks the product, then reads it, so that two changes cannot start from the same state. Two statements: after waiting
 * for a lock, one statement would return the version from before; both are sent at once. Not against foreign keys: views and sales reference
 * the product while they hold its counters, which we write last. With an author, products of others are neither locked nor returned.
 */
export async function lockProduct(
  tx: Tx,
  id: string,
  authorId: string | null = null,
): Promise<ProductWithVersion | undefined> {
  const ofAuthor = sql`(${authorId}::uuid is null or author_id = ${authorId})`;
  const [, { rows }] = await sendInOrder(tx, [
    () =>
      sql`${prepared("lock_product")}
        select from products where id = ${id} and ${ofAuthor} for no key update`.execute(tx),
    () =>
      sql<ProductWithVersion>`${prepared("read_product")}
        ${PRODUCTS_WITH_VERSION} where p.id = ${id} and ${ofAuthor}`.execute(tx),
  ]);
  return rows[0];
}

/** All products of an author. Waits for a concurrent publication. */
export async function lockProductsOf(tx: Tx, authorId: string): Promise<ProductWithVersion[]> {
  await sql`select from products where author_id = ${authorId} order by id for no key update`.execute(tx);
  const { rows } = await sql<ProductWithVersion>`
    ${PRODUCTS_WITH_VERSION} where p.author_id = ${authorId} order by p.id`.execute(tx);
  return rows;
}

/** Filters the ids to the author's products that are not deleted. */
export async function findOwn(db: Queries, authorId: string, ids: string[]): Promise<ProductWithVersion[]> {
  const { rows } = await sql<ProductWithVersion>`
    ${PRODUCTS_WITH_VERSION}
     where p.author_id = ${authorId} and p.id = any (${ids}::uuid[]) and p.status <> 'deleted'`.execute(db);
  return rows;
}

/** Locks in order of id to avoid deadlocks, and reads after all locks are held. */
export async function lockOwn(tx: Tx, authorId: string, ids: string[]): Promise<ProductWithVersion[]> {
  const [, products] = await sendInOrder(tx, [
    () =>
      sql`
      select from products
       where author_id = ${authorId} and id = any (${ids}::uuid[]) order by id for no key update`.execute(tx),
    () => findOwn(tx, authorId, ids),
  ]);
  return products;
}

/** What the terms of a sale are computed from. */
interface ProductForSale
  extends Pick<
    ProductForReader,
    | "id"
    | "authorId"
    | "authorBannedAt"
    | "refundDays"
    | "title"
    | "type"
    | "status"
    | "priceMinor"
    | "currency"
    | "commissionBasisPoints"
    | "authorsCommissionBasisPoints"
    | "firstPublishedAt"
    | "version"
  > {}

/** Without a lock. */
export async function findForSale(db: Queries, id: string) {
  const { rows } = await sql<ProductForSale>`
    select p.id, p.author_id as "authorId", u.banned_at as "authorBannedAt", u.refund_days as "refundDays", p.title, p.type,
           p.status, p.price_minor as "priceMinor", p.currency, p.commission_basis_points as "commissionBasisPoints",
           u.commission_basis_points as "authorsCommissionBasisPoints", p.first_published_at as "firstPublishedAt", p.version
      from products p join users u on u.id = p.author_id
     where p.id = ${id}`.execute(db);
  return rows[0];
}

/** The pinned version if it is a released one of the line, else the line's newest. */
export async function findVersion(
  db: Queries,
  productId: string,
  which: { major: number | null; pinned: string | undefined },
) {
  const { rows } = await sql<VersionRow>`
    select ${sql.raw(VERSION_COLUMNS)} from product_versions v join products p on p.id = v.product_id
     where v.product_id = ${productId}
       and (${which.major}::int is null or v.numbers[1] = ${which.major} and v.numbers <= p.released)
       and (${which.pinned ?? null}::text is null or v.version = ${which.pinned ?? null})
     order by v.numbers desc limit 1`.execute(db);
  return rows[0];
}

export const findReleased = (db: Queries, id: string) =>
  db
    .selectFrom("products")
    .select(["title", "released"])
    .where("id", "=", id)
    .$castTo<{ title: string; released: number[] | null }>()
    .executeTakeFirst();

export const findModerationDecision = (db: Queries, id: string) =>
  db
    .selectFrom("products")
    .select("moderationCode")
    .where("id", "=", id)
    .$castTo<Pick<ModerationDecision, "moderationCode">>()
    .executeTakeFirst();

export interface ListedVersion {
  version: string;
  numbers: number[];
  changelog: string;
  acknowledgesRegression: boolean;
  createdAt: Date;
}

/** Newest first. `released` limits them to those that buyers get. */
export async function listVersions(
  db: Queries,
  productId: string,
  { released, ...paging }: Paging & { released: boolean },
): Promise<Page<ListedVersion>> {
  const found = db
    .selectFrom("productVersions as v")
    .innerJoin("products as p", "p.id", "v.productId")
    .where("v.productId", "=", productId)
    .$if(released, (versions) => versions.whereRef("v.numbers", "<=", "p.released"));
  const items = await found
    .select(["v.version", "v.numbers", "v.changelog", "v.acknowledgesRegression", "v.createdAt"])
    .orderBy("v.numbers", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await found
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export const findOneVersion = (db: Queries, productId: string, version: string) =>
  db
    .selectFrom("productVersions")
    .select([
      "version",
      "numbers",
      "content",
      "contentFormat",
      "variables",
      "changelog",
      "acknowledgesRegression",
      "files",
      "createdAt",
    ])
    .where("productId", "=", productId)
    .where("version", "=", version)
    .$castTo<ListedVersion & VersionRow>()
    .executeTakeFirst();

/** Without an approval, the last one stays. */
export interface ProductValues extends Partial<Approval> {
  title: string;
  description: string;
  lang: string | null;
  type: string;
  category: string | null;
  priceMinor: number;
  currency: string;
  commissionBasisPoints: number | null;
  compatibility: string[];
  tags: string[];
  requirements: string[];
  features: string[];
  license: string | null;
  samples: string;
  models: string;
  preview: string;
  images: string;
  version: string;
  released: number[] | null;
  card: string;
}

/** The columns of products and product_versions, as JSON. */
export interface NewDraft
  extends Omit<ProductValues, keyof Approval | "released" | "samples" | "models" | "images">,
    NewVersion {
  id: string;
  authorId: string;
  samples: StoredSample[];
  models: Record<string, string>;
  images: StoredImage[];
  createdAt: Date;
}

const insertDraftsSql = readStatement<{ drafts: string }>(
  new URL("./sql/insert-drafts.sql", import.meta.url),
);

/** With their counters and first versions. */
export const insertDraftRows = (tx: Tx, drafts: NewDraft[]) =>
  insertDraftsSql({
    drafts: JSON.stringify(drafts.map((draft) => ({ ...draft, numbers: parseVersion(draft.version) }))),
  }).execute(tx);

export const updateProduct = (tx: Tx, id: string, values: ProductValues, now: Date) =>
  tx
    .updateTable("products")
    .set((row) => ({ ...values, updatedAt: now, revision: row("revision", "+", 1) }))
    .where("id", "=", id)
    .execute();

/** With the product's title and description at that time. */
type NewVersion = VersionRow & Pick<ProductRow, "title" | "description">;

export const insertVersion = (tx: Tx, productId: string, version: NewVersion, now: Date) =>
  tx
    .insertInto("productVersions")
    .values({
      productId,
      version: version.version,
      numbers: parseVersion(version.version),
      title: version.title,
      description: version.description,
      content: version.content,
      contentFormat: version.contentFormat,
      variables: JSON.stringify(version.variables),
      changelog: version.changelog,
      acknowledgesRegression: version.acknowledgesRegression,
      files: JSON.stringify(version.files),
      createdAt: now,
    })
    .execute();

/** Only for a product that was never published: released versions are immutable. */
export async function replaceVersion(tx: Tx, productId: string, old: string, version: NewVersion, now: Date) {
  await tx
    .deleteFrom("productVersions")
    .where("productId", "=", productId)
    .where("version", "=", old)
    .execute();
  await insertVersion(tx, productId, version, now);
}

/** A product after its move, with what is rendered of it. */
export interface WrittenMove extends Partial<Approval> {
  after: ProductRow;
  card: string;
}

const writeMovesSql = readStatement<{ moves: string }>(new URL("./sql/write-moves.sql", import.meta.url));

export const writeMoveRows = (tx: Tx, moves: WrittenMove[]) =>
  writeMovesSql({ moves: JSON.stringify(moves.map(toMoveRow)) }).execute(tx);

const toMoveRow = ({ after, card, approvedDetails, approvedImages }: WrittenMove) => ({
  id: after.id,
  status: after.status,
  released: after.released,
  moderationCode: after.moderationCode,
  moderationReason: after.moderationReason,
  moderatedAt: after.moderatedAt,
  at: after.updatedAt,
  card,
  approvedDetails,
  approvedImages,
});

/** Replaces the author at the end of each card, in every state. Locks in order of id to avoid deadlocks. */
export const replaceAuthorInCards = (tx: Tx, authorId: string, card: { begins: string; end: string }) =>
  sql`
    with held as (select id from products where author_id = ${authorId} order by id for no key update)
    update products p set card = split_part(p.card, ${card.begins}, 1) || ${card.end}, revision = p.revision + 1
      from held where p.id = held.id`.execute(tx);
