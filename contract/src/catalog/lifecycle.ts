import { z } from "zod";
import { Timestamp } from "../core/envelope.ts";

export const productStatuses = [
  "draft",
  "pending_review",
  "published",
  "rejected",
  "unpublished",
  "suspended",
  "deleted",
] as const;
export const ProductStatus = z.enum(productStatuses).describe("An open set for readers");

/** Why moderators take a product off the market; for the first two it is taken from its buyers, too. */
export const suspensionReasons = [
  "malicious",
  "illegal",
  "infringing",
  "misleading",
  "spam",
  "other",
] as const;

export const Moderation = z
  .object({
    reasonCode: z.enum(suspensionReasons).nullable().describe("Of a suspension; an open set for readers"),
    reason: z.string().nullable(),
    at: Timestamp,
  })
  .meta({ id: "Moderation", description: "Why moderators rejected or suspended a product." });

export const Move = z
  .object({
    action: z.string().describe("As the audit log calls it: product.suspended"),
    from: ProductStatus,
    to: ProductStatus,
    by: z.enum(["author", "moderator", "operator"]),
    reasonCode: z.enum(suspensionReasons).nullable(),
    reason: z.string().nullable(),
    at: Timestamp,
  })
  .meta({ id: "Move", description: "A step in the life of a product." });

export type ProductStatus = z.infer<typeof ProductStatus>;
export type SuspensionReason = (typeof suspensionReasons)[number];
export type Move = z.input<typeof Move>;
