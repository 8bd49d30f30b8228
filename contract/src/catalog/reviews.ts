import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { filter, paging, queryNumber, Timestamp } from "../core/envelope.ts";
import { visibleText } from "../core/visible-text.ts";

const reads = { who: "visitor", permission: "products:read" } as const;
const writes = { who: "member", permission: "purchases:write" } as const;
const admin = { who: "admin" } as const;
const params = z.object({ productId: z.string() });
const ofReview = z.object({ productId: z.string(), reviewId: z.string() });

const rating = z.int().min(1).max(5);
const comment = visibleText(5_000);
const reason = visibleText(500).min(1);
const person = z.object({ id: z.string(), name: z.string() });

export const Review = z
  .object({
    id: z.string(),
    productId: z.string(),
    author: person,
    rating,
    comment: z.string(),
    createdAt: Timestamp,
    updatedAt: Timestamp.nullable().describe("When its author last changed it; null: never"),
    refunded: z
      .boolean()
      .describe("Its author got a refund: the review stays, and does not count in the average"),
    reply: z
      .object({ comment: z.string(), createdAt: Timestamp, updatedAt: Timestamp.nullable() })
      .nullable()
      .describe("The reply of the product's author"),
    hidden: z
      .object({ reason: z.string(), at: Timestamp })
      .nullable()
      .describe("Hidden by a moderator: only its author sees it, and it does not count in the average"),
  })
  .meta({ id: "Review" });

const product = z.object({ id: z.string(), title: z.string() });

export const ReceivedReview = Review.extend({ product }).meta({ id: "ReceivedReview" });

export const CreateReview = z
  .strictObject({ rating, comment: comment.default("") })
  .meta({ id: "CreateReview" });
export const UpdateReview = z.strictObject({ rating, comment }).partial().meta({ id: "UpdateReview" });

export const ModeratedReview = Review.extend({
  product,
  reports: z
    .array(z.object({ reporter: person, reason: z.string(), createdAt: Timestamp }))
    .describe("Open reports: the oldest 20"),
  openReports: z.int(),
}).meta({ id: "ModeratedReview" });

export type Review = z.input<typeof Review>;
export type ReceivedReview = z.input<typeof ReceivedReview>;
export type CreateReview = z.output<typeof CreateReview>;
export type UpdateReview = z.output<typeof UpdateReview>;
export type ModeratedReview = z.input<typeof ModeratedReview>;

export const list = endpoint({
  name: "reviews.list",
  method: "GET",
  path: "/products/:productId/reviews",
  summary: "List the reviews of a product, newest first",
  description:
    "meta.ratings has the number of reviews for each number of stars, and their average, without hidden reviews and those of refunded buyers.",
  access: reads,
  params,
  query: z.strictObject({
    ...paging,
    rating: queryNumber(rating).optional().describe("Only reviews with this many stars"),
  }),
  response: listOf(Review),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const listReceived = endpoint({
  name: "reviews.listReceived",
  method: "GET",
  path: "/reviews",
  summary: "List the reviews of your products, those without a reply first",
  description: "Then the newest first. Without reviews that a moderator hid.",
  access: { who: "member", permission: "products:read", rolePermission: "manage:products" },
  query: z.strictObject({
    ...paging,
    status: filter(z.enum(["unanswered", "answered"])),
    productId: filter(z.string().max(100)),
    rating: queryNumber(rating).optional().describe("Only reviews with this many stars"),
  }),
  response: listOf(ReceivedReview),
});

export const get = endpoint({
  name: "reviews.get",
  method: "GET",
  path: "/products/:productId/reviews/:reviewId",
  summary: "Read one review",
  access: reads,
  params: ofReview,
  response: one(Review),
  errors: ["PRODUCT_NOT_FOUND", "REVIEW_NOT_FOUND"],
});

export const create = endpoint({
  name: "reviews.create",
  method: "POST",
  path: "/products/:productId/reviews",
  summary: "Review a product that you bought",
  access: writes,
  params,
  request: json(CreateReview, { rating: 5, comment: "Does what it says." }),
  response: created(Review),
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});

export const update = endpoint({
  name: "reviews.update",
  method: "PATCH",
  path: "/products/:productId/reviews/:reviewId",
  summary: "Change your review",
  description: "A review that a moderator hid cannot change.",
  access: writes,
  params: ofReview,
  request: json(UpdateReview, { rating: 4, comment: "Still good after a month." }),
  response: one(Review),
  supportsIfMatch: true,
  errors: ["PRODUCT_NOT_FOUND", "REVIEW_NOT_FOUND", "INVALID_STATE"],
});

export const deleteReview = endpoint({
  name: "reviews.delete",
  method: "DELETE",
  path: "/products/:productId/reviews/:reviewId",
  summary: "Delete your review",
  description: "You can write another one. A review that a moderator hid cannot be deleted.",
  access: writes,
  params: ofReview,
  response: one(z.object({ id: z.string(), deleted: z.literal(true) })),
  errors: ["PRODUCT_NOT_FOUND", "REVIEW_NOT_FOUND", "INVALID_STATE"],
});

export const reply = endpoint({
  name: "reviews.reply",
  method: "POST",
  path: "/products/:productId/reviews/:reviewId/reply",
  summary: "Reply to a review of your product",
  description: "A review has one reply: a new one replaces it.",
  access: { who: "member", permission: "products:write" },
  params: ofReview,
  request: json(z.strictObject({ comment: comment.min(1) }).meta({ id: "ReplyToReview" }), {
    comment: "Thank you! The next version will do this too.",
  }),
  response: created(Review),
  errors: ["PRODUCT_NOT_FOUND", "REVIEW_NOT_FOUND"],
});

export const deleteReply = endpoint({
  name: "reviews.deleteReply",
  method: "DELETE",
  path: "/products/:productId/reviews/:reviewId/reply",
  summary: "Delete your reply",
  access: { who: "member", permission: "products:write" },
  params: ofReview,
  response: one(Review),
  errors: ["PRODUCT_NOT_FOUND", "REVIEW_NOT_FOUND", "INVALID_STATE"],
});

export const report = endpoint({
  name: "reviews.report",
  method: "POST",
  path: "/products/:productId/reviews/:reviewId/report",
  summary: "Report a review to the moderators",
  description: "Once for each review.",
  access: writes,
  params: ofReview,
  request: json(z.strictObject({ reason }).meta({ id: "ReportReview" }), {
    reason: "Advertises another shop",
  }),
  response: created(z.object({ id: z.string(), reported: z.literal(true) })),
  errors: ["PRODUCT_NOT_FOUND", "REVIEW_NOT_FOUND", "VALIDATION_ERROR"],
});

export const moderated = endpoint({
  name: "admin.reviews.list",
  method: "GET",
  path: "/admin/reviews",
  summary: "List reviews that were reported or hidden, newest first",
  access: admin,
  query: z.strictObject({
    ...paging,
    status: filter(z.enum(["reported", "hidden"]), "Both when it is absent"),
  }),
  response: listOf(ModeratedReview),
});

export const hide = endpoint({
  name: "admin.reviews.hide",
  method: "POST",
  path: "/admin/reviews/:reviewId/hide",
  summary: "Hide a review",
  description: "Its author sees the reason. Its reports are resolved, and it does not count in the average.",
  access: admin,
  params: z.object({ reviewId: z.string() }),
  request: json(
    z
      .strictObject({ reason: reason.describe("Shown to its author, and stored in the audit log") })
      .meta({ id: "HideReview" }),
    { reason: "Advertises another shop" },
  ),
  response: one(ModeratedReview),
  errors: ["REVIEW_NOT_FOUND", "INVALID_STATE"],
});

export const restore = endpoint({
  name: "admin.reviews.restore",
  method: "POST",
  path: "/admin/reviews/:reviewId/restore",
  summary: "Show a hidden review again, or dismiss its reports",
  description: "Its reports are resolved.",
  access: admin,
  params: z.object({ reviewId: z.string() }),
  response: one(ModeratedReview),
  errors: ["REVIEW_NOT_FOUND", "INVALID_STATE"],
});
