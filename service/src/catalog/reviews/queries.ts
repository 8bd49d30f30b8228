import { type ExpressionBuilder, sql } from "kysely";
import { compileOnce } from "../../platform/db/compile-once.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { DB } from "../../platform/db/tables.gen.ts";

export interface NewReview {
  id: string;
  productId: string;
  authorId: string;
  rating: number;
  comment: string;
  createdAt: Date;
}

export interface ReviewRow extends NewReview {
  authorName: string;
  updatedAt: Date | null;
  reply: string | null;
  repliedAt: Date | null;
  replyUpdatedAt: Date | null;
  hiddenAt: Date | null;
  hiddenReason: string | null;
  refunded: boolean;
}

const reviews = (db: Queries) =>
  db
    .selectFrom("reviews as r")
    .innerJoin("users as u", "u.id", "r.authorId")
    .select([
      "r.id",
      "r.productId",
      "r.authorId",
      "u.name as authorName",
      "r.rating",
      "r.comment",
      "r.createdAt",
      "r.updatedAt",
      "r.reply",
      "r.repliedAt",
      "r.replyUpdatedAt",
      "r.hiddenAt",
      "r.hiddenReason",
      "r.refunded",
    ])
    .$castTo<ReviewRow>();

export const findReview = (db: Queries, id: string) => reviews(db).where("r.id", "=", id).executeTakeFirst();

export const lockReview = (tx: Tx, id: string) =>
  reviews(tx).where("r.id", "=", id).forUpdate(["r"]).executeTakeFirst();

export const lockReviewOf = async (tx: Tx, authorId: string, productId: string) =>
  (await lockReviewRow(tx, { authorId, productId })).rows[0];

const lockReviewRow = compileOnce((tx, { authorId, productId }: { authorId: string; productId: string }) =>
  reviews(tx).where("r.authorId", "=", authorId).where("r.productId", "=", productId).forUpdate(["r"]),
);

/** A hidden review is visible to its author only. */
const isVisibleTo = (readerId: string | null) => (row: ExpressionBuilder<{ r: DB["reviews"] }, "r">) =>
  row.or([row("r.hiddenAt", "is", null), ...(readerId ? [row("r.authorId", "=", readerId)] : [])]);

export interface ReviewFilter extends Paging {
  rating?: number | undefined;
}

export const listReviews = (db: Queries, productId: string, readerId: string | null, filter: ReviewFilter) =>
  reviews(db)
    .where("r.productId", "=", productId)
    .where(isVisibleTo(readerId))
    .$if(filter.rating !== undefined, (found) => found.where("r.rating", "=", filter.rating!))
    .orderBy("r.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .execute();

export interface ReceivedFilter extends Paging {
  status?: "unanswered" | "answered" | undefined;
  productId?: string | undefined;
  rating?: number | undefined;
}

export interface ReceivedRow extends ReviewRow {
  productTitle: string;
}

/** Of the products of one seller, those without a reply first. */
export async function listReceived(
  db: Queries,
  sellerId: string,
  filter: ReceivedFilter,
): Promise<Page<ReceivedRow>> {
  const { status, productId, rating } = filter;
  const wanted = sql<boolean>`r.hidden_at is null
    and r.product_id in (select id from products where author_id = ${sellerId} and status <> 'deleted')
    ${status ? sql`and (r.reply is null) = ${status === "unanswered"}` : sql``}
    ${productId ? sql`and r.product_id = ${productId}` : sql``}
    ${rating === undefined ? sql`` : sql`and r.rating = ${rating}`}`;
  const items = await reviews(db)
    .innerJoin("products as p", "p.id", "r.productId")
    .select("p.title as productTitle")
    .where(wanted)
    .orderBy(sql`r.reply is not null`)
    .orderBy("r.id", "desc")
    .limit(filter.limit)
    .offset(offsetOf(filter))
    .$castTo<ReceivedRow>()
    .execute();
  const { total } = await db
    .selectFrom("reviews as r")
    .where(wanted)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

export interface StarsRow {
  rating: number;
  shown: number;
  counted: number;
}

/** By stars: the reviews that the reader sees, and those that count for the rating. */
export const countStars = (db: Queries, productId: string, readerId: string | null): Promise<StarsRow[]> =>
  db
    .selectFrom("reviews as r")
    .where("r.productId", "=", productId)
    .where(isVisibleTo(readerId))
    .groupBy("r.rating")
    .select((row) => [
      "r.rating",
      row.fn.countAll<number>().as("shown"),
      row.fn
        .countAll<number>()
        .filterWhere((one) => one.and([one("r.hiddenAt", "is", null), one("r.refunded", "=", false)]))
        .as("counted"),
    ])
    .execute();

/** Returns false when the author has a review of the product. */
export async function insertReview(tx: Tx, review: NewReview): Promise<boolean> {
  const written = await tx
    .insertInto("reviews")
    .values(review)
    .onConflict((conflict) => conflict.columns(["productId", "authorId"]).doNothing())
    .returning("id")
    .executeTakeFirst();
  return written !== undefined;
}

export interface ReviewChange {
  rating?: number;
  comment?: string;
  updatedAt?: Date;
  reply?: string | null;
  repliedAt?: Date | null;
  replyUpdatedAt?: Date | null;
  hiddenAt?: Date | null;
  hiddenReason?: string | null;
  refunded?: boolean;
}

export const writeReview = (tx: Tx, id: string, change: ReviewChange) =>
  tx.updateTable("reviews").set(change).where("id", "=", id).execute();

export const deleteReview = (tx: Tx, id: string) => tx.deleteFrom("reviews").where("id", "=", id).execute();

/** Returns false when the user has reported the review. */
export async function insertReport(
  tx: Tx,
  report: { reviewId: string; reporterId: string; reason: string; createdAt: Date },
): Promise<boolean> {
  const written = await tx
    .insertInto("reviewReports")
    .values(report)
    .onConflict((conflict) => conflict.columns(["reviewId", "reporterId"]).doNothing())
    .returning("reviewId")
    .executeTakeFirst();
  return written !== undefined;
}

/** Returns the number of resolved reports. */
export async function resolveReports(tx: Tx, reviewId: string, now: Date): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable("reviewReports")
    .set({ resolvedAt: now })
    .where("reviewId", "=", reviewId)
    .where("resolvedAt", "is", null)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

interface ReportRow {
  reporterId: string;
  reporterName: string;
  reason: string;
  createdAt: Date;
}

export interface ModeratedRow extends ReviewRow {
  productTitle: string;
  openReports: number;
  reports: ReportRow[];
}

/** At most this many reports are shown with a review. */
const SHOWN_REPORTS = 20;

const moderated = (db: Queries) =>
  reviews(db)
    .innerJoin("products as p", "p.id", "r.productId")
    .select([
      "p.title as productTitle",
      sql<number>`(select count(*) from review_reports o where o.review_id = r.id and o.resolved_at is null)`.as(
        "openReports",
      ),
    ])
    .$castTo<Omit<ModeratedRow, "reports">>();

const reported = sql`select review_id from review_reports where resolved_at is null`;
const hidden = sql`select id from reviews where hidden_at is not null`;
const moderationQueue = { reported, hidden, any: sql`${reported} union ${hidden}` };

async function withReports(db: Queries, rows: Omit<ModeratedRow, "reports">[]): Promise<ModeratedRow[]> {
  const { rows: reports } = await sql<ReportRow & { reviewId: string }>`
    select o.review_id, o.reporter_id, u.name as "reporterName", o.reason,
           o.created_at
      from unnest(${rows.map((row) => row.id)}::uuid[]) as asked (id)
      cross join lateral (
        select * from review_reports o where o.review_id = asked.id and o.resolved_at is null
         order by o.created_at, o.reporter_id limit ${SHOWN_REPORTS}) o
      join users u on u.id = o.reporter_id
     order by o.created_at, o.reporter_id`.execute(db);
  return rows.map((row) => ({ ...row, reports: reports.filter(({ reviewId }) => reviewId === row.id) }));
}

export async function findModerated(db: Queries, id: string): Promise<ModeratedRow | undefined> {
  const [row] = await withReports(db, await moderated(db).where("r.id", "=", id).execute());
  return row;
}

export async function listModerated(
  db: Queries,
  status: "reported" | "hidden" | undefined,
  paging: Paging,
): Promise<Page<ModeratedRow>> {
  const wanted = sql<boolean>`r.id in (${moderationQueue[status ?? "any"]})`;
  const rows = await moderated(db)
    .where(wanted)
    .orderBy("r.id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("reviews as r")
    .where(wanted)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: await withReports(db, rows), total };
}
