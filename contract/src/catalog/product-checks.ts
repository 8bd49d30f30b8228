import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";
import { ProductStatus } from "./lifecycle.ts";
import { ProductScanReport } from "./product-scans.ts";
import { ProductWarning } from "./products.ts";

const similarity = z.number().min(0).max(1);

export const ProductChecks = z
  .object({
    warnings: z.array(ProductWarning).describe("Of the present content, as the seller got them"),
    scan: ProductScanReport.nullable().describe(
      "Of the newest version, since it was submitted or published; null: it was not scanned",
    ),
    approved: z
      .object({
        version: z.string(),
        title: z.string(),
        description: z.string(),
        content: z.string(),
        contentFormat: z.enum(["text", "messages"]),
        createdAt: Timestamp,
      })
      .nullable()
      .describe("The version that buyers get now, as it was when it was made; null: never published"),
    duplicates: z
      .array(
        z.object({
          id: z.string(),
          title: z.string(),
          status: ProductStatus,
          seller: z.object({ id: z.string(), name: z.string() }),
          isSameSeller: z.boolean(),
          titleSimilarity: similarity.describe("Of the letters, three at a time"),
          textSimilarity: similarity.describe("Of the words, three at a time; 1: the same text"),
        }),
      )
      .describe("The five that are most alike in title or text, the closest first"),
    compared: z
      .int()
      .min(0)
      .describe(
        "Number of compared products: those with nearly the same text or title, the newest of the seller, and published ones that share words of the title",
      ),
  })
  .meta({
    id: "ProductChecks",
    description: "What the service knows about a product that waits for review.",
  });

export type ProductChecks = z.input<typeof ProductChecks>;

export const get = endpoint({
  name: "admin.products.checks",
  method: "GET",
  path: "/admin/products/:productId/checks",
  summary: "Check a product: warnings, duplicates and the released version",
  description:
    "Texts that were published and share four of five runs of three words with this one are found whatever their title (MinHash, with a recall above 0.99). Beyond them, at most 120 products are compared, so that the cost does not grow with the catalog.",
  access: { who: "admin" },
  params: z.object({ productId: z.string() }),
  response: one(ProductChecks),
  errors: ["PRODUCT_NOT_FOUND"],
});
