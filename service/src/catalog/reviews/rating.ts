import type { Tx } from "../../platform/db/database.ts";
import { adjustRating } from "../search/product-stats.ts";
import { deleteReview, lockReviewOf, type ReviewRow, writeReview } from "./queries.ts";

/** What decides how a review counts. */
type RatedReview = Pick<ReviewRow, "rating" | "hiddenAt" | "refunded">;

const contributionOf = (review: RatedReview | null) =>
  review && review.hiddenAt === null && !review.refunded
    ? { count: 1, sum: review.rating }
    : { count: 0, sum: 0 };

/**
 * Moves the product's rating by what a change of one review makes of it; null: there is none. In the transaction of
 * the change, whose review is locked. Locks are taken in one order everywhere, so that nobody waits in a circle:
 * entitlement, review, product_stats, listing.
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

/** The buyer gets the money back: what they wrote stays in the list, marked, and leaves the rating. */
export const excludeReviewFromRating = (tx: Tx, buyerId: string, productId: string) =>
  setRefunded(tx, { buyerId, productId }, true);

/** They bought it again. */
export const includeReviewInRating = (tx: Tx, buyerId: string, productId: string) =>
  setRefunded(tx, { buyerId, productId }, false);

async function setRefunded(tx: Tx, of: { buyerId: string; productId: string }, refunded: boolean) {
  const review = await lockReviewOf(tx, of.buyerId, of.productId);
  if (!review) return;
  await writeReview(tx, review.id, { refunded });
  await updateRating(tx, of.productId, { from: review, to: { ...review, refunded } });
}

/** As if they had never written it. */
export async function deleteReviewOf(tx: Tx, authorId: string, productId: string): Promise<void> {
  const review = await lockReviewOf(tx, authorId, productId);
  if (!review) return;
  await deleteReview(tx, review.id);
  await updateRating(tx, productId, { from: review, to: null });
}
