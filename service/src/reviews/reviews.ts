import type { PostReview } from "@stoa/contract";
import { countRating } from "../catalogue/sales.ts";
import type { Caller, Context, Member } from "../context.ts";
import { mapPage, type Paging } from "../db/paging.ts";
import { ApiError, ruleBroken } from "../errors.ts";
import { announce } from "../events/outbox.ts";
import { toId } from "../ids.ts";
import { toUserId } from "../people/users.ts";
import { findProductToRun } from "../products/detail.ts";
import { findReview, insertReview, listReviews, type ReviewRow } from "./queries.ts";

const toReview = (row: ReviewRow) => ({
  id: toId("rev", row.id),
  productId: toId("prod", row.productId),
  author: { id: toUserId(row.authorId), name: row.authorName },
  rating: row.rating,
  comment: row.comment,
  createdAt: row.createdAt.toISOString(),
});

export async function listProductReviews(ctx: Context, caller: Caller, productId: string, query: Paging) {
  const product = await findProductToRun(ctx, caller, productId);
  return mapPage(await listReviews(ctx.db, product.id, query), toReview);
}

/** Buyers review what they hold, once each; the rating moves in the same transaction. */
export async function postReview(ctx: Context, caller: Member, productId: string, review: PostReview) {
  const product = await findProductToRun(ctx, caller, productId);
  if (product.reason !== "purchased") throw ruleBroken("productId", "can be reviewed by its buyers alone");
  const id = ctx.newId();
  return ctx.db.transaction().execute(async (tx) => {
    const written = await insertReview(tx, {
      ...review,
      id,
      product_id: product.id,
      author_id: caller.userId,
      created_at: ctx.now(),
    });
    if (!written) throw new ApiError("CONFLICT", "You have reviewed this product already.");
    await countRating(tx, product.id, review.rating);
    await announce(ctx, tx, [product.authorId], "review.created", {
      review: {
        id: toId("rev", id),
        productId: toId("prod", product.id),
        ...review,
        authorId: toUserId(caller.userId),
      },
    });
    return toReview(await findReview(tx, id));
  });
}
