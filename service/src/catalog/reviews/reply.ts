import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import type { Context, Member } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId } from "../../core/ids.ts";
import { findProductToReview } from "../products/detail.ts";
import { writeReview } from "./queries.ts";
import { findVisibleReview, lockVisibleReview, type ReviewPath, readUpdatedReview } from "./review.ts";

async function findReviewToReply(ctx: Context, caller: Member, path: ReviewPath) {
  const product = await findProductToReview(ctx, caller, path.productId);
  const review = await findVisibleReview(ctx, caller, path);
  if (product.authorId === caller.userId) return { id: review.id, product };
  throw new ApiError("UNAUTHORIZED", "Only the author of the product may reply.", { required: "author" });
}

/** One reply per review: a new one replaces it and keeps the creation date. */
export async function replyToReview(ctx: Context, caller: Member, path: ReviewPath, comment: string) {
  const { id, product } = await findReviewToReply(ctx, caller, path);
  return ctx.db.transaction().execute(async (tx) => {
    const { reply, authorId } = await lockVisibleReview(tx, caller, id);
    const now = ctx.now();
    if (reply === null) await writeReview(tx, id, { reply: comment, repliedAt: now });
    else if (reply !== comment) await writeReview(tx, id, { reply: comment, replyUpdatedAt: now });
    await ctx.idempotencyKey?.bind(tx, toId("rev", id));
    await notifyAccount(ctx, tx, {
      userId: authorId,
      kind: "review.replied",
      subjectId: toId("rev", id),
      actorId: caller.userId,
      data: { product: product.title, productId: toId("prod", product.id) },
    });
    return readUpdatedReview(tx, id);
  });
}

export async function removeReply(ctx: Context, caller: Member, path: ReviewPath) {
  const { id } = await findReviewToReply(ctx, caller, path);
  return ctx.db.transaction().execute(async (tx) => {
    const { reply } = await lockVisibleReview(tx, caller, id);
    if (reply === null)
      throw new ApiError("INVALID_STATE", "The review has no reply.", { current: "unanswered" });
    await writeReview(tx, id, { reply: null, repliedAt: null, replyUpdatedAt: null });
    return readUpdatedReview(tx, id);
  });
}
