import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { hideReview, listToModerate, reportReview, restoreReview } from "./moderation.ts";
import { removeReply, replyToReview } from "./reply.ts";
import { changeReview, listProductReviews, postReview, readReview, removeReview } from "./reviews.ts";

export const reviewRoutes = [
  route(api.reviews.list, (ctx, caller, { params, query }) =>
    listProductReviews(ctx, caller, params.productId, query),
  ),
  route(api.reviews.get, (ctx, caller, { params }) => readReview(ctx, caller, params)),
  route(api.reviews.create, (ctx, caller, { params, body }) =>
    postReview(ctx, caller, params.productId, body),
  ),
  route(api.reviews.change, (ctx, caller, { params, body }, { ifMatch }) =>
    changeReview(ctx, caller, params, body, ifMatch),
  ),
  route(api.reviews.remove, (ctx, caller, { params }) => removeReview(ctx, caller, params)),
  route(api.reviews.reply, (ctx, caller, { params, body }) =>
    replyToReview(ctx, caller, params, body.comment),
  ),
  route(api.reviews.removeReply, (ctx, caller, { params }) => removeReply(ctx, caller, params)),
  route(api.reviews.report, (ctx, caller, { params, body }) =>
    reportReview(ctx, caller, params, body.reason),
  ),
  route(api.admin.reviews, (ctx, _caller, { query }) => listToModerate(ctx, query)),
  route(api.admin.hideReview, (ctx, caller, { params, body }, { source }) =>
    hideReview(ctx, { caller, source }, params.reviewId, body.reason),
  ),
  route(api.admin.restoreReview, (ctx, caller, { params }, { source }) =>
    restoreReview(ctx, { caller, source }, params.reviewId),
  ),
];
