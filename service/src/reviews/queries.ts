import type { Queries, Tx } from "../db/database.ts";
import { offsetOf, type Page, type Paging } from "../db/paging.ts";

export interface ReviewRow {
  id: string;
  productId: string;
  authorId: string;
  authorName: string;
  rating: number;
  comment: string;
  createdAt: Date;
}

const reviews = (db: Queries) =>
  db
    .selectFrom("reviews as r")
    .innerJoin("users as u", "u.id", "r.author_id")
    .select([
      ...(["r.id", "r.product_id as productId", "r.author_id as authorId", "u.name as authorName"] as const),
      ...(["r.rating", "r.comment", "r.created_at as createdAt"] as const),
    ])
    .$castTo<ReviewRow>();

export const findReview = (db: Queries, id: string) =>
  reviews(db).where("r.id", "=", id).executeTakeFirstOrThrow();

export async function listReviews(db: Queries, productId: string, paging: Paging): Promise<Page<ReviewRow>> {
  const items = await reviews(db)
    .where("r.product_id", "=", productId)
    .orderBy("r.id", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .execute();
  const { total } = await db
    .selectFrom("reviews")
    .where("product_id", "=", productId)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items, total };
}

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
