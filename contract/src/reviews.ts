import { z } from "zod";
import { endpoint } from "./endpoint.ts";
import { paging, Timestamp } from "./envelope.ts";

const reads = { who: "visitor", permission: "products:read" } as const;
const params = z.object({ productId: z.string() });

export const Review = z
  .object({
    id: z.string(),
    productId: z.string(),
    author: z.object({ id: z.string(), name: z.string() }),
    rating: z.int().min(1).max(5),
    comment: z.string(),
    createdAt: Timestamp,
  })
  .meta({ id: "Review" });

export const PostReview = z
  .strictObject({ rating: z.int().min(1).max(5), comment: z.string().trim().max(5_000).default("") })
  .meta({ id: "PostReview" });
export type PostReview = z.output<typeof PostReview>;

export const list = endpoint({
  name: "reviews.list",
  method: "GET",
  path: "/products/:productId/reviews",
  summary: "List the reviews of a product",
  access: reads,
  params,
  query: z.strictObject(paging),
  data: Review,
  list: true,
  errors: ["PRODUCT_NOT_FOUND"],
});

export const create = endpoint({
  name: "reviews.create",
  method: "POST",
  path: "/products/:productId/reviews",
  summary: "Review a product that you bought",
  access: { who: "member", permission: "purchases:write" },
  params,
  body: PostReview,
  data: Review,
  status: 201,
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
  example: { rating: 5, comment: "Does what it says." },
});
