import type { Review } from "@stoa/contract";
import { toUserId } from "../../accounts/people/users.ts";
import { type Caller, type Context, isMember, type Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { required } from "../../core/required.ts";
import type { Tx } from "../../platform/db/database.ts";
import { findProductToReview } from "../products/detail.ts";
import { findReview, lockReview, type ReviewRow } from "./queries.ts";

export const toReview = (row: ReviewRow): Review => ({
  id: toId("rev", row.id),
  productId: toId("prod", row.productId),
  author: { id: toUserId(row.authorId), name: row.authorName },
  rating: row.rating,
  comment: row.comment,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt?.toISOString() ?? null,
  refunded: row.refunded,
  reply: toReply(row),
  hidden: row.hiddenAt && {
    reason: required(row.hiddenReason, "the reason of a hidden review"),
    at: row.hiddenAt.toISOString(),
  },
});

const toReply = ({ reply, repliedAt, replyUpdatedAt }: ReviewRow): Review["reply"] =>
  reply === null
    ? null
    : {
        comment: reply,
        createdAt: required(repliedAt, "the date of a reply").toISOString(),
        updatedAt: replyUpdatedAt?.toISOString() ?? null,
      };

export const readerIdOf = (caller: Caller) => (isMember(caller) ? caller.userId : null);

export interface ReviewPath {
  productId: string;
  reviewId: string;
}

/** Hidden reviews are visible to their author only, and authors keep access when they lose the product. */
export async function findVisibleReview(ctx: Context, caller: Caller, path: ReviewPath): Promise<ReviewRow> {
  const id = toUuid("rev", path.reviewId);
  const found = id ? await findReview(ctx.db, id) : undefined;
  const review = found && toId("prod", found.productId) === path.productId ? found : undefined;
  if (review && review.authorId === readerIdOf(caller)) return review;
  await findProductToReview(ctx, caller, path.productId);
  if (!review || review.hiddenAt) throw new ApiError("REVIEW_NOT_FOUND");
  return review;
}

/** Locks and reads again: the review may have been deleted or hidden meanwhile. */
export async function lockVisibleReview(tx: Tx, caller: Member, id: string): Promise<ReviewRow> {
  const review = await lockReview(tx, id);
  if (!review || (review.hiddenAt && review.authorId !== caller.userId))
    throw new ApiError("REVIEW_NOT_FOUND");
  if (review.hiddenAt)
    throw new ApiError("INVALID_STATE", "A moderator hid this review. It cannot be changed.", {
      current: "hidden",
    });
  return review;
}

export async function readUpdatedReview(tx: Tx, id: string): Promise<Review> {
  return toReview(required(await findReview(tx, id), "the review"));
}
