import { type ExpressionBuilder, sql } from "kysely";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { DB } from "../../platform/db/tables.gen.ts";

export interface ReviewRow {
  id: string;
  productId: string;
  authorId: string;
  authorName: string;
  rating: number;
  comment: string;
  createdAt: Date;
  updatedAt: Date | null;
  reply: string | null;
  repliedAt: Date | null;
  replyUpdatedAt: Date | null;
  hiddenAt: Date | null;
  hiddenReason: string | null;
  refunded: boolean;
}

const COLUMNS = [
  ...(["r.id", "r.product_id as productId", "r.author_id as authorId", "u.name as authorName"] as const),
  ...(["r.rating", "r.comment", "r.created_at as createdAt", "r.updated_at as updatedAt"] as const),
  ...(["r.reply", "r.replied_at as repliedAt", "r.reply_updated_at as replyUpdatedAt"] as const),
  ...(["r.hidden_at as hiddenAt", "r.hidden_reason as hiddenReason", "r.refunded"] as const),
] as const;

const reviews = (db: Queries) =>
  db
    .selectFrom("reviews as r")
    .innerJoin("users as u", "u.id", "r.author_id")
    .select(COLUMNS)
    .$castTo<ReviewRow>();

export const findReview = (db: Queries, id: string) => reviews(db).where("r.id", "=", id).executeTakeFirst();

export const lockReview = (tx: Tx, id: string) =>
  reviews(tx).where("r.id", "=", id).forUpdate(["r"]).executeTakeFirst();

export const lockReviewOf = (tx: Tx, authorId: string, productId: string) =>
  reviews(tx)
    .where("r.author_id", "=", authorId)
    .where("r.product_id", "=", productId)
    .forUpdate(["r"])
    .executeTakeFirst();

/** A hidden review is its author's alone. */
const isShownTo = (readerId: string | null) => (row: ExpressionBuilder<{ r: DB["reviews"] }, "r">) =>
  row.or([row("r.hidden_at", "is", null), ...(readerId ? [row("r.author_id", "=", readerId)] : [])]);

export interface ReviewFilter extends Paging {
  rating?: number | undefined;
}

export const listReviews = (db: Queries, productId: string, readerId: string | null, asked: ReviewFilter) =>
  reviews(db)
    .where("r.product_id", "=", productId)
    .where(isShownTo(readerId))
    .$if(asked.rating !== undefined, (found) => found.where("r.rating", "=", asked.rating!))
    .orderBy("r.id", "desc")
    .limit(asked.limit)
    .offset(offsetOf(asked))
    .execute();

export interface StarsRow {
  rating: number;
  shown: number;
  counted: number;
}

/** By stars: how many reviews this reader finds in the list, and how many are part of the rating. */
export const countStars = (db: Queries, productId: string, readerId: string | null): Promise<StarsRow[]> =>
  db
    .selectFrom("reviews as r")
    .where("r.product_id", "=", productId)
    .where(isShownTo(readerId))
    .groupBy("r.rating")
    .select((row) => [
      "r.rating",
      row.fn.countAll<number>().as("shown"),
      row.fn
        .countAll<number>()
        .filterWhere((one) => one.and([one("r.hidden_at", "is", null), one("r.refunded", "=", false)]))
        .as("counted"),
    ])
    .execute();

export interface NewReview {
  id: string;
  product_id: string;
  author_id: string;
  rating: number;
  comment: string;
  created_at: Date;
}

/** False when this author has reviewed this product already. */
export async function insertReview(tx: Tx, review: NewReview): Promise<boolean> {
  const written = await tx
    .insertInto("reviews")
    .values(review)
    .onConflict((conflict) => conflict.columns(["product_id", "author_id"]).doNothing())
    .returning("id")
    .executeTakeFirst();
  return written !== undefined;
}

export interface ReviewChange {
  rating?: number;
  comment?: string;
  updated_at?: Date;
  reply?: string | null;
  replied_at?: Date | null;
  reply_updated_at?: Date | null;
  hidden_at?: Date | null;
  hidden_reason?: string | null;
  refunded?: boolean;
}

export const writeReview = (tx: Tx, id: string, change: ReviewChange) =>
  tx.updateTable("reviews").set(change).where("id", "=", id).execute();

export const deleteReview = (tx: Tx, id: string) => tx.deleteFrom("reviews").where("id", "=", id).execute();

/** False when this member has reported this review already. */
export async function insertReport(
  tx: Tx,
  report: { review_id: string; reporter_id: string; reason: string; created_at: Date },
): Promise<boolean> {
  const written = await tx
    .insertInto("review_reports")
    .values(report)
    .onConflict((conflict) => conflict.columns(["review_id", "reporter_id"]).doNothing())
    .returning("review_id")
    .executeTakeFirst();
  return written !== undefined;
}

/** Returns the number of resolved reports. */
export async function resolveReports(tx: Tx, reviewId: string, now: Date): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable("review_reports")
    .set({ resolved_at: now })
    .where("review_id", "=", reviewId)
    .where("resolved_at", "is", null)
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

/** So many reports are shown with a review. */
const SHOWN_REPORTS = 20;

const moderated = (db: Queries) =>
  reviews(db)
    .innerJoin("products as p", "p.id", "r.product_id")
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
    select o.review_id as "reviewId", o.reporter_id as "reporterId", u.name as "reporterName", o.reason,
           o.created_at as "createdAt"
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
