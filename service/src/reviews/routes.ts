import { api } from "@stoa/contract";
import { route } from "../http/route.ts";
import { listProductReviews, postReview } from "./reviews.ts";

export const reviewRoutes = [
  route(api.reviews.list, (ctx, caller, { params, query }) =>
    listProductReviews(ctx, caller, params.productId, query),
  ),
  route(api.reviews.create, (ctx, caller, { params, body }) =>
    postReview(ctx, caller, params.productId, body),
  ),
];
