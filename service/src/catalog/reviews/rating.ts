import type { Tx } from "../../platform/db/database.ts";
import { moveRating } from "../search/stats.ts";
import { deleteReview, lockReviewOf, type ReviewRow, writeReview } from "./queries.ts";

/** What decides how a review counts. */
type Counted = Pick<ReviewRow, "rating" | "hiddenAt" | "refunded">;

const weightOf = (review: Counted | null) =>
  review && review.hiddenAt === null && !review.refunded
    ? { count: 1, sum: review.rating }
    : { count: 0, sum: 0 };

/**
 * Moves the product's rating by what a change of one review makes of it; null: there is none. In the transaction of
 * the change, whose review is locked. Locks are taken in one order everywhere, so that nobody waits in a circle:
 * entitlement, review, product_stats, listing.
 */
export async function moveByReview(
  tx: Tx,
  productId: string,
  change: { from: Counted | null; to: Counted | null },
): Promise<void> {
  const [from, to] = [weightOf(change.from), weightOf(change.to)];
  const by = { count: to.count - from.count, sum: to.sum - from.sum };
  if (by.count !== 0 || by.sum !== 0) await moveRating(tx, productId, by);
}

/** The buyer gets the money back: what they wrote stays in the list, marked, and leaves the rating. */
export const leaveOutReviewOf = (tx: Tx, buyerId: string, productId: string) =>
  setRefunded(tx, { buyerId, productId }, true);

/** They bought it again. */
export const countReviewAgainOf = (tx: Tx, buyerId: string, productId: string) =>
  setRefunded(tx, { buyerId, productId }, false);

async function setRefunded(tx: Tx, of: { buyerId: string; productId: string }, refunded: boolean) {
  const review = await lockReviewOf(tx, of.buyerId, of.productId);
  if (!review) return;
  await writeReview(tx, review.id, { refunded });
  await moveByReview(tx, of.productId, { from: review, to: { ...review, refunded } });
}

/** As if they had never written it. */
export async function forgetReviewOf(tx: Tx, authorId: string, productId: string): Promise<void> {
  const review = await lockReviewOf(tx, authorId, productId);
  if (!review) return;
  await deleteReview(tx, review.id);
  await moveByReview(tx, productId, { from: review, to: null });
}
