import { z } from "zod";
import { endpoint, one } from "../core/endpoint.ts";
import { FieldProblem, queryFlag } from "../core/envelope.ts";
import { productStatuses } from "./lifecycle.ts";
import { CreateProduct, UpdateProduct } from "./products.ts";

export const MAX_IMPORTED_PRODUCTS = 1_000;
export const MAX_IMPORTED_BYTES = 20 * 1024 * 1024;

const besides = {
  id: z
    .string()
    .trim()
    .min(1)
    .max(200)
    .optional()
    .describe(
      "The id of a product of yours, or your own name for it, which identifies it at the next import",
    ),
  status: z
    .enum(productStatuses)
    .optional()
    .describe(
      "As in exports; only `publish` reads it, and skips products with another status than published",
    ),
};

/** A line with an unknown id creates a product. */
export const ImportedProduct = CreateProduct.extend(besides).meta({ id: "ImportedProduct" });
/** A line with the id of a product changes the fields that it has. */
export const ImportedUpdate = UpdateProduct.extend(besides);

export type ImportedProduct = z.output<typeof ImportedProduct>;
export type ImportedUpdate = z.output<typeof ImportedUpdate>;

const Imported = z
  .object({
    line: z.int().describe("The line where it begins in its file"),
    file: z.string().optional().describe("Its file in a folder"),
    id: z.string().nullable().describe("null: a dry run created none"),
    title: z.string(),
    status: z.enum(productStatuses).describe("New values may be added"),
    outcome: z.enum(["created", "updated", "unchanged"]),
    notPublished: z.array(FieldProblem).optional().describe("Why publish did not publish it"),
  })
  .meta({ id: "ImportedProductResult" });

export const ImportResult = z
  .object({
    dryRun: z.boolean(),
    created: z.int(),
    updated: z.int(),
    unchanged: z.int(),
    published: z.int().describe("Number of published products"),
    products: z.array(Imported),
  })
  .meta({ id: "ImportResult" });

export type ImportResult = z.infer<typeof ImportResult>;

export const exportProducts = endpoint({
  name: "products.export",
  method: "GET",
  path: "/products/export",
  summary: "Export your products as a file",
  description:
    "All your products except deleted ones, or those of `productIds`, oldest first, with the content of their newest version. The format is JSON Lines, or a zip of Markdown files with front matter. Each product is consistent: a product that changes during the export is exported as before or after the change.",
  access: { who: "member", permission: "products:read" },
  query: z.strictObject({
    format: z.enum(["jsonl", "markdown"]).default("jsonl"),
    productIds: z.string().max(5_000).optional().describe("Only these ids, separated by commas"),
  }),
  response: { kind: "file", types: ["application/jsonl", "application/zip"] },
});

export const importProducts = endpoint({
  name: "products.import",
  method: "POST",
  path: "/products/import",
  summary: "Create and change products from a file",
  description: `JSON Lines (a product a line, with the fields of POST /products), one Markdown file with front matter, or a zip of those; at most ${MAX_IMPORTED_PRODUCTS.toLocaleString("en")} products. All of it is checked first, and nothing is written unless everything is right: the answer lists every problem with its line. New products are drafts. A line with an \`id\` that is known changes that product as PATCH would; where nothing differs nothing happens.`,
  access: { who: "member", permission: "products:write" },
  query: z.strictObject({
    dryRun: queryFlag.describe("Only check"),
    publish: queryFlag.describe(
      "Then publish each product, unless its line has another status than published",
    ),
  }),
  request: {
    kind: "raw",
    types: ["application/jsonl", "application/x-ndjson", "text/markdown", "application/zip"],
    maxBytes: MAX_IMPORTED_BYTES,
  },
  response: one(ImportResult),
  errors: ["VALIDATION_ERROR"],
});
