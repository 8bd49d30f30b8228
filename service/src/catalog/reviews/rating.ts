import type { Tx } from "../../platform/db/database.ts";
import { adjustRating } from "../search/product-stats.ts";
import { deleteReview, lockReviewOf, type ReviewRow, writeReview } from "./queries.ts";

type RatedReview = Pick<ReviewRow, "rating" | "hiddenAt" | "refunded">;

const contributionOf = (review: RatedReview | null) =>
  review && review.hiddenAt === null && !review.refunded
    ? { count: 1, sum: review.rating }
    : { count: 0, sum: 0 };

/**
 * Updates the product's rating after a change of one locked review; null: no review. Runs in the transaction of the
 * change. Lock order everywhere: entitlement, review, product_stats, search document, listing.
 */
export async function updateRating(
  tx: Tx,
  productId: string,
  change: { from: RatedReview | null; to: RatedReview | null },
): Promise<void> {
  const [from, to] = [contributionOf(change.from), contributionOf(change.to)];
  const by = { count: to.count - from.count, sum: to.sum - from.sum };
  if (by.count !== 0 || by.sum !== 0) await adjustRating(tx, productId, by);
}

/** On refund: the review stays listed, marked, and no longer counts. */
export const excludeReviewFromRating = (tx: Tx, buyerId: string, productId: string) =>
  setRefunded(tx, { buyerId, productId }, true);

/** On buying again after a refund. */
export const includeReviewInRating = (tx: Tx, buyerId: string, productId: string) =>
  setRefunded(tx, { buyerId, productId }, false);

async function setRefunded(tx: Tx, of: { buyerId: string; productId: string }, refunded: boolean) {
  const review = await lockReviewOf(tx, of.buyerId, of.productId);
  if (!review) return;
  await writeReview(tx, review.id, { refunded });
  await updateRating(tx, of.productId, { from: review, to: { ...review, refunded } });
}

export async function deleteReviewOf(tx: Tx, authorId: string, productId: string): Promise<void> {
  const review = await lockReviewOf(tx, authorId, productId);
  if (!review) return;
  await deleteReview(tx, review.id);
  await updateRating(tx, productId, { from: review, to: null });
}
