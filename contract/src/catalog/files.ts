import { z } from "zod";
import { endpoint } from "../core/endpoint.ts";
import { visibleText } from "../core/visible-text.ts";

const MIB = 1024 * 1024;
export const MAX_FILE_BYTES = 50 * MIB;
export const MAX_IMAGE_BYTES = 10 * MIB;

export const ProductFile = z
  .object({
    id: z.string(),
    name: z.string(),
    size: z.int().describe("Bytes"),
    type: z.string().describe("Media type, by what the bytes are"),
    sha256: z.string().describe("Of the bytes, in hexadecimal"),
    url: z
      .string()
      .describe("Downloads it without a header; good for 15 minutes or a little longer, for you"),
  })
  .meta({ id: "ProductFile" });

export const ProductImage = z
  .object({
    id: z.string(),
    alt: z.string(),
    url: z.string().describe("The widest"),
    width: z.int(),
    height: z.int(),
    sizes: z.array(z.object({ width: z.int(), url: z.string() })).describe("For srcset, the smallest first"),
  })
  .meta({ id: "ProductImage", description: "A picture as WebP, never wider than what was uploaded." });

export type ProductFile = z.infer<typeof ProductFile>;
export type ProductImage = z.infer<typeof ProductImage>;

const access = { who: "member", permission: "products:write" } as const;
const params = z.object({ productId: z.string() });
const version = z.string().describe("The version that this made or changed: the product's newest");
const errors = ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR", "INVALID_STATE"] as const;

export const addFile = endpoint({
  name: "files.add",
  method: "POST",
  path: "/products/:productId/files",
  summary: "Add a file that buyers may download",
  description:
    "One file, at most 50 MiB; a version has at most 20 files, 200 MiB together. A file of the same name takes the old one's place; the same bytes under the same name change nothing. What a file is, its bytes decide: text (txt, md, json, jsonl, csv, tsv, yaml), pdf, zip, docx, xlsx, pptx, png, jpeg, webp, gif and avif are taken, and name and media type must agree with them. Once a product has been published this makes a new immutable version (a minor bump).",
  access,
  params,
  upload: { maxBytes: MAX_FILE_BYTES },
  body: z.strictObject({
    changelog: visibleText(5_000).describe("The note of the new version").optional(),
  }),
  data: ProductFile.extend({ version }),
  status: 201,
  errors,
  example: { changelog: "With a worked example." },
});

export const removeFile = endpoint({
  name: "files.remove",
  method: "DELETE",
  path: "/products/:productId/files/:fileId",
  summary: "Take a file away",
  description:
    "Once a product has been published this makes a new version without the file; buyers of older major lines keep it.",
  access,
  params: params.extend({ fileId: z.string() }),
  data: z.object({ id: z.string(), version }),
  errors: [...errors, "FILE_NOT_FOUND"],
});

export const addImage = endpoint({
  name: "images.add",
  method: "POST",
  path: "/products/:productId/images",
  summary: "Add a picture to a product's page",
  description:
    "PNG, JPEG, WebP, GIF (its first frame) or AVIF, at most 10 MiB and 40 megapixels; a product has at most 10 images, the first is its cover. It is encoded anew as WebP in three widths, without metadata.",
  tag: "files",
  access,
  params,
  upload: { maxBytes: MAX_IMAGE_BYTES },
  body: z.strictObject({
    alt: visibleText(300).describe("What it shows, for those who cannot see it").optional(),
  }),
  data: ProductImage,
  status: 201,
  errors,
  example: { alt: "A haiku about rain" },
});

export const removeImage = endpoint({
  name: "images.remove",
  method: "DELETE",
  path: "/products/:productId/images/:imageId",
  summary: "Take a picture away",
  tag: "files",
  access,
  params: params.extend({ imageId: z.string() }),
  data: z.object({ id: z.string() }),
  errors: [...errors, "IMAGE_NOT_FOUND"],
});
