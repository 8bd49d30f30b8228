import { z } from "zod";
import { endpoint, json, one } from "../core/endpoint.ts";
import { ProductScan, ScanFinding } from "./product-scans.ts";
import { UpdateProduct } from "./products.ts";

export const ScanDraft = UpdateProduct.pick({
  title: true,
  description: true,
  preview: true,
  changelog: true,
  requirements: true,
  features: true,
  license: true,
  tags: true,
  variables: true,
  content: true,
  contentFormat: true,
}).meta({ id: "ScanDraft" });

export const DraftScan = z
  .object({
    ...ProductScan.shape,
    findings: z
      .array(
        ScanFinding.extend({
          isBlocking: z
            .boolean()
            .describe("true: the service refuses to publish or to change the product until this is fixed"),
          isNew: z.boolean().describe("Whether the newest scanned version did not have it"),
        }),
      )
      .describe("At most 100, the gravest first"),
  })
  .meta({ id: "DraftScan", description: "What moderators and buyers would learn of a draft." });

export type ScanDraft = z.output<typeof ScanDraft>;
export type DraftScan = z.input<typeof DraftScan>;

export const scan = endpoint({
  name: "products.scan",
  method: "POST",
  path: "/products/:productId/scan",
  summary: "Scan your product before you publish it",
  description:
    "Scans the stored product with the fields that you send in place of its own, and stores nothing. Only secrets prevent a publication. Moderators get high findings of a product that goes on sale, and all findings of one that waits for review. `badges` are what buyers would see.",
  access: { who: "member", permission: "products:write" },
  params: z.object({ productId: z.string() }),
  request: json(ScanDraft, { content: "Write a haiku about {{topic}}." }),
  response: one(DraftScan),
  errors: ["PRODUCT_NOT_FOUND"],
});
