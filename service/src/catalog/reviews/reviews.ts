import type { CreateReview, Ratings, ReceivedReview, UpdateReview } from "@stoa/contract";
import { notifyAccount } from "../../accounts/notifications/notify-account.ts";
import { toUserId } from "../../accounts/people/users.ts";
import type { Caller, Context, Member } from "../../core/context.ts";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { publishEvent } from "../../events/outbox/outbox.ts";
import type { Tx } from "../../platform/db/database.ts";
import { EMPTY_PAGE, mapPage, type Page } from "../../platform/db/paging.ts";
import { mustMatch } from "../../platform/http/conditional.ts";
import { etagOf } from "../../platform/http/envelope.ts";
import { DataResponse } from "../../platform/http/route.ts";
import { lockLiveEntitlement } from "../entitlements/entitlements.ts";
import { findProductToReview } from "../products/detail.ts";
import { averageRating } from "../search/card.ts";
import {
  countStars,
  deleteReview,
  insertReview,
  listReceived,
  listReviews,
  type ReceivedFilter,
  type ReviewFilter,
  type ReviewRow,
  type StarsRow,
  writeReview,
} from "./queries.ts";
import { updateRating } from "./rating.ts";
import {
  findVisibleReview,
  lockVisibleReview,
  type ReviewPath,
  readerIdOf,
  readUpdatedReview,
  toReview,
} from "./review.ts";

function toRatings(rows: StarsRow[]): Ratings {
  const stars = { 1: 0, 2: 0, 3: 0, 4: 0, 5: 0 };
  for (const { rating, counted } of rows) stars[rating as keyof typeof stars] = counted;
  const count = rows.reduce((sum, row) => sum + row.counted, 0);
  const sum = rows.reduce((all, row) => all + row.rating * row.counted, 0);
  return { average: averageRating(sum, count), count, stars };
}

/** Newest first, with counts by stars. The counts also give the total. */
export async function listProductReviews(
  ctx: Context,
  caller: Caller,
  productId: string,
  filter: ReviewFilter,
) {
  const product = await findProductToReview(ctx, caller, productId);
  const readerId = readerIdOf(caller);
  const [rows, stars] = await Promise.all([
    listReviews(ctx.db, product.id, readerId, filter),
    countStars(ctx.db, product.id, readerId),
  ]);
  const counted = stars.filter(({ rating }) => filter.rating === undefined || rating === filter.rating);
  const total = counted.reduce((sum, { shown }) => sum + shown, 0);
  return { items: rows.map(toReview), total, ratings: toRatings(stars) };
}

/** For their seller, who replies to them. */
export async function listReceivedReviews(
  ctx: Context,
  { userId }: Member,
  query: ReceivedFilter,
): Promise<Page<ReceivedReview>> {
  const productId = query.productId === undefined ? undefined : toUuid("prod", query.productId);
  if (productId === null) return EMPTY_PAGE;
  return mapPage(await listReceived(ctx.db, userId, { ...query, productId }), (row) => ({
    ...toReview(row),
    product: { id: toId("prod", row.productId), title: row.productTitle },
  }));
}

export async function readReview(ctx: Context, caller: Caller, path: ReviewPath) {
  return toReview(await findVisibleReview(ctx, caller, path));
}

/** One review per buyer and product. The rating changes in the same transaction. */
export async function postReview(ctx: Context, caller: Member, productId: string, review: CreateReview) {
  const product = await findProductToReview(ctx, caller, productId);
  const id = ctx.newId();
  return ctx.db.transaction().execute(async (tx) => {
    await mustOwnProduct(tx, caller, product);
    const written = await insertReview(tx, {
      ...review,
      id,
      productId: product.id,
      authorId: caller.userId,
      createdAt: ctx.now(),
    });
    if (!written) throw new ApiError("CONFLICT", "You have reviewed this product already.");
    await ctx.idempotencyKey?.bind(tx, toId("rev", id));
    await updateRating(tx, product.id, { from: null, to: { ...review, hiddenAt: null, refunded: false } });
    await publishEvent(ctx, tx, [product.authorId], "review.created", {
      review: {
        id: toId("rev", id),
        productId: toId("prod", product.id),
        ...review,
        authorId: toUserId(caller.userId),
      },
    });
    await notifyAccount(ctx, tx, {
      userId: product.authorId,
      kind: "review.created",
      subjectId: toId("rev", id),
      actorId: caller.userId,
      data: { product: product.title, rating: String(review.rating) },
    });
    return readUpdatedReview(tx, id);
  });
}

/** Locks the entitlement: a concurrent refund waits, and then finds the review. */
async function mustOwnProduct(
  tx: Tx,
  caller: Member,
  product: { id: string; authorId: string },
): Promise<void> {
  const isBuyer = product.authorId !== caller.userId;
  if (isBuyer && (await lockLiveEntitlement(tx, caller.userId, product.id))) return;
  throw ruleViolation("productId", "can be reviewed by its buyers alone");
}

async function findOwnReview(ctx: Context, caller: Member, path: ReviewPath): Promise<ReviewRow> {
  const review = await findVisibleReview(ctx, caller, path);
  if (review.authorId === caller.userId) return review;
  throw new ApiError("UNAUTHORIZED", "Only its author may change this review.", { required: "author" });
}

/** Omitted fields stay. A change without effect writes nothing. */
export async function changeReview(
  ctx: Context,
  caller: Member,
  path: ReviewPath,
  change: UpdateReview,
  ifMatch: string | null,
) {
  const { id, productId } = await findOwnReview(ctx, caller, path);
  return ctx.db.transaction().execute(async (tx) => {
    const review = await lockVisibleReview(tx, caller, id);
    mustMatch(ifMatch, etagOf(toReview(review)));
    const { rating = review.rating, comment = review.comment } = change;
    if (rating !== review.rating || comment !== review.comment) {
      await writeReview(tx, id, { rating, comment, updatedAt: ctx.now() });
      await updateRating(tx, productId, { from: review, to: { ...review, rating } });
    }
    const data = await readUpdatedReview(tx, id);
    return new DataResponse(data, { etag: etagOf(data) });
  });
}

export async function removeReview(ctx: Context, caller: Member, path: ReviewPath) {
  const { id, productId } = await findOwnReview(ctx, caller, path);
  return ctx.db.transaction().execute(async (tx) => {
    const review = await lockVisibleReview(tx, caller, id);
    await deleteReview(tx, id);
    await updateRating(tx, productId, { from: review, to: null });
    return { id: toId("rev", id), deleted: true as const };
  });
}
