import { z } from "zod";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, filter, paging, queryFlag, Timestamp } from "../core/envelope.ts";
import { visibleText } from "../core/visible-text.ts";
import { Moderation, productStatuses, StatusChange, suspensionReasons } from "./lifecycle.ts";
import { ProductDetail, productTypes } from "./products.ts";

export const ModeratedProduct = z
  .object({
    id: z.string(),
    title: z.string(),
    type: z.enum(productTypes),
    status: z.enum(productStatuses),
    statusSince: Timestamp,
    category: z.string().nullable(),
    price: Amount,
    currency: Currency,
    version: z.string(),
    seller: z.object({
      id: z.string(),
      name: z.string(),
      email: z.string(),
      verified: z.boolean(),
      bannedAt: Timestamp.nullable(),
      products: z.record(z.string(), z.int()).describe("Their number in each status"),
    }),
    moderation: Moderation.nullable(),
    reports: z
      .array(
        z.object({
          reporter: z
            .object({ id: z.string(), name: z.string() })
            .nullable()
            .describe("null: the marketplace found a copy of another seller's text or title"),
          reasonCode: z.enum(suspensionReasons),
          comment: z.string().nullable(),
          createdAt: Timestamp,
        }),
      )
      .describe("Open reports: the oldest 20"),
    openReports: z.int(),
    history: z.array(StatusChange).describe("The last ten changes, newest first"),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    firstPublishedAt: Timestamp.nullable(),
  })
  .meta({ id: "ModeratedProduct", description: "A product as moderators list it." });

const reason = visibleText(2_000).min(1);

export const RejectProduct = z
  .strictObject({ reason: reason.describe("Sent to the seller: what to change") })
  .meta({ id: "RejectProduct" });

export const SuspendProduct = z
  .strictObject({
    reasonCode: z.enum(suspensionReasons),
    reason: reason.optional().describe("Sent to the seller; required with `other`"),
  })
  .meta({ id: "SuspendProduct" });

export const ReportProduct = z
  .strictObject({
    reasonCode: z.enum(suspensionReasons),
    comment: reason.optional().describe("What moderators should know; required with `other`"),
  })
  .meta({ id: "ReportProduct" });

export type ReportProduct = z.output<typeof ReportProduct>;
export type ModeratedProduct = z.input<typeof ModeratedProduct>;
export type RejectProduct = z.output<typeof RejectProduct>;
export type SuspendProduct = z.output<typeof SuspendProduct>;

const access = { who: "admin" } as const;
const params = z.object({ productId: z.string() });

export const list = endpoint({
  name: "admin.products.list",
  method: "GET",
  path: "/admin/products",
  summary: "List products of all sellers by the time in their status",
  description:
    "The moderators' queue is ?status=pending_review&order=oldest: the product that waits longest comes first. A change does not move a product to the end. Totals are exact up to 10,000, above that a lower bound.",
  access,
  query: z.strictObject({
    ...paging,
    status: filter(z.enum(productStatuses)),
    author: z.string().max(100).optional().describe("The id of the seller"),
    search: z.string().trim().min(1).max(120).optional().describe("A part of a title, or a product's id"),
    order: z.enum(["newest", "oldest"]).default("newest").describe("By statusSince"),
    reported: queryFlag.describe("Only products with open reports"),
  }),
  response: listOf(ModeratedProduct),
});

const verdict = {
  method: "POST",
  access,
  params,
  response: one(ProductDetail),
  supportsIfMatch: true,
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE", "VALIDATION_ERROR"],
} as const;

export const approve = endpoint({
  ...verdict,
  name: "admin.products.approve",
  path: "/admin/products/:productId/approve",
  summary: "Approve a product that waits for review",
  description:
    "Send If-Match with the ETag of the product that you read: if it has changed since, it is not approved (412). The seller gets an email.",
});

export const reject = endpoint({
  ...verdict,
  name: "admin.products.reject",
  path: "/admin/products/:productId/reject",
  summary: "Reject a product that waits for review, with a reason; the seller gets an email",
  request: json(RejectProduct, { reason: "The description promises images, and the prompt makes none." }),
});

export const suspend = endpoint({
  ...verdict,
  name: "admin.products.suspend",
  path: "/admin/products/:productId/suspend",
  summary: "Suspend a product with a reason; the seller gets an email",
  description:
    "Open reports of it are resolved. Buyers keep access, unless the reason is malicious or illegal: then they can neither run nor read it.",
  request: json(SuspendProduct, { reasonCode: "infringing", reason: "The text is another seller's." }),
});

export const reinstate = endpoint({
  ...verdict,
  name: "admin.products.reinstate",
  path: "/admin/products/:productId/reinstate",
  summary: "End a suspension: the product is unpublished, and its seller can publish it again",
});

export const report = endpoint({
  name: "products.report",
  method: "POST",
  path: "/products/:productId/report",
  summary: "Report a product to the moderators",
  description: "Once until they have decided. The seller does not see who reported it.",
  access: { who: "member", permission: "purchases:write" },
  params,
  request: json(ReportProduct, { reasonCode: "infringing", comment: "The text is from my book." }),
  response: created(z.object({ id: z.string(), reported: z.literal(true) })),
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR"],
});

export const dismissReports = endpoint({
  name: "admin.products.dismissReports",
  method: "POST",
  path: "/admin/products/:productId/dismiss-reports",
  summary: "Dismiss the open reports of a product",
  description: "The product stays as it is. Users can report it again.",
  access,
  params,
  response: one(z.object({ id: z.string(), openReports: z.literal(0) })),
  errors: ["PRODUCT_NOT_FOUND", "INVALID_STATE"],
});
