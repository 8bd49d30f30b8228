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
export const ProductStatus = z.enum(productStatuses).describe("New values may be added");

/** The first two also end the buyers' access. */
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
    reasonCode: z.enum(suspensionReasons).nullable().describe("For a suspension; new values may be added"),
    reason: z.string().nullable(),
    at: Timestamp,
  })
  .meta({ id: "Moderation", description: "Why moderators rejected or suspended a product." });

export const StatusChange = z
  .object({
    action: z.string().describe("As in the audit log: product.suspended"),
    from: ProductStatus,
    to: ProductStatus,
    by: z.enum(["author", "moderator", "operator"]),
    reasonCode: z.enum(suspensionReasons).nullable(),
    reason: z.string().nullable(),
    at: Timestamp,
  })
  .meta({ id: "StatusChange", description: "A change of a product's status." });

export type ProductStatus = z.infer<typeof ProductStatus>;
export type SuspensionReason = (typeof suspensionReasons)[number];
export type StatusChange = z.input<typeof StatusChange>;
