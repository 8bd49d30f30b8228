import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { Amount, Currency, Timestamp } from "../core/envelope.ts";
import { Variable } from "../formats/variables.ts";
import { ProductFile, ProductImage } from "./files.ts";
import { ProductStatus } from "./lifecycle.ts";
import { ProductScanReport } from "./product-scans.ts";
import { ProductSample, ProductWarning } from "./products.ts";
import { Regression } from "./score-card.ts";

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
        variables: z.array(Variable),
        files: z.array(ProductFile.omit({ url: true })),
        createdAt: Timestamp,
        details: z
          .object({
            category: z.string().nullable(),
            lang: z.string().nullable(),
            tags: z.array(z.string()),
            price: Amount,
            currency: Currency,
            compatibility: z.array(z.string()),
            models: z.record(z.string(), z.string()),
            requirements: z.array(z.string()),
            features: z.array(z.string()),
            license: z.string().nullable(),
            contentPreview: z.string(),
            samples: z.array(ProductSample),
            gallery: z.array(ProductImage),
          })
          .nullable()
          .describe(
            "The product's other fields at its last approval; without moderation, at its last change. null: it has not been on sale since the marketplace records them",
          ),
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
    measured: z
      .array(
        Regression.pick({ provider: true, model: true, before: true, after: true }).extend({
          isWorse: z.boolean().describe("Whether it passes less by more than the 95 % intervals explain"),
        }),
      )
      .describe(
        "Models that evaluations measured with this version and with the one that buyers get now, by the same test set",
      ),
    sellerRuns: z
      .object({ failed: z.int(), n: z.int() })
      .describe("Runs of all products of the seller by others that ended in the last 30 days"),
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
