import { api } from "@stoa/contract";
import type { Caller, Context } from "../../core/context.ts";
import { resumableRoute, route } from "../../platform/http/route.ts";
import {
  hideReview,
  listReviewsToModerate,
  reportReview,
  restoreReview,
  resumeModeration,
  toReportResponse,
} from "./moderation.ts";
import { removeReply, replyToReview } from "./reply.ts";
import {
  changeReview,
  listProductReviews,
  listReceivedReviews,
  postReview,
  readReview,
  removeReview,
} from "./reviews.ts";

const resumeReview = (
  ctx: Context,
  caller: Caller,
  reviewId: string,
  { params }: { params: { productId: string } },
) => readReview(ctx, caller, { productId: params.productId, reviewId });

export const reviewRoutes = [
  route(api.reviews.list, (ctx, caller, { params, query }) =>
    listProductReviews(ctx, caller, params.productId, query),
  ),
  route(api.reviews.listReceived, (ctx, caller, { query }) => listReceivedReviews(ctx, caller, query)),
  route(api.reviews.get, (ctx, caller, { params }) => readReview(ctx, caller, params)),
  resumableRoute(
    api.reviews.create,
    (ctx, caller, { params, body }) => postReview(ctx, caller, params.productId, body),
    resumeReview,
  ),
  route(api.reviews.update, (ctx, caller, { params, body }, { ifMatch }) =>
    changeReview(ctx, caller, params, body, ifMatch),
  ),
  route(api.reviews.delete, (ctx, caller, { params }) => removeReview(ctx, caller, params)),
  resumableRoute(
    api.reviews.reply,
    (ctx, caller, { params, body }) => replyToReview(ctx, caller, params, body.comment),
    resumeReview,
  ),
  route(api.reviews.deleteReply, (ctx, caller, { params }) => removeReply(ctx, caller, params)),
  resumableRoute(
    api.reviews.report,
    (ctx, caller, { params, body }) => reportReview(ctx, caller, params, body.reason),
    async (_ctx, _caller, reviewId) => toReportResponse(reviewId),
  ),
  route(api.admin.reviews.list, (ctx, _caller, { query }) => listReviewsToModerate(ctx, query)),
  resumableRoute(
    api.admin.reviews.hide,
    (ctx, caller, { params, body }, { source }) =>
      hideReview(ctx, { caller, source }, params.reviewId, body.reason),
    (ctx, _caller, reviewId) => resumeModeration(ctx, reviewId),
  ),
  resumableRoute(
    api.admin.reviews.restore,
    (ctx, caller, { params }, { source }) => restoreReview(ctx, { caller, source }, params.reviewId),
    (ctx, _caller, reviewId) => resumeModeration(ctx, reviewId),
  ),
];
