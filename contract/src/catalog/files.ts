import { z } from "zod";
import { created, endpoint, json, one } from "../core/endpoint.ts";
import { visibleText } from "../core/visible-text.ts";

const MIB = 1024 * 1024;
export const MAX_FILE_BYTES = 50 * MIB;
export const MAX_IMAGE_BYTES = 10 * MIB;

export const ProductFile = z
  .object({
    id: z.string(),
    name: z.string(),
    size: z.int().describe("Bytes"),
    type: z.string().describe("Media type, detected from the bytes"),
    sha256: z.string().describe("SHA-256 of the bytes, in hexadecimal"),
    url: z.string().describe("A download link that needs no header; valid for you for about 15 minutes"),
  })
  .meta({ id: "ProductFile" });

export const ProductImage = z
  .object({
    id: z.string(),
    alt: z.string(),
    url: z.string().describe("The widest size"),
    width: z.int(),
    height: z.int(),
    sizes: z.array(z.object({ width: z.int(), url: z.string() })).describe("For srcset, the smallest first"),
  })
  .meta({ id: "ProductImage", description: "An image as WebP, never wider than the upload." });

export type ProductFile = z.infer<typeof ProductFile>;
export type ProductImage = z.infer<typeof ProductImage>;

const access = { who: "member", permission: "products:write" } as const;
const params = z.object({ productId: z.string() });
const version = z.string().describe("The created or changed version: the product's newest");
const errors = ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR", "INVALID_STATE"] as const;

export const createFile = endpoint({
  name: "files.create",
  method: "POST",
  path: "/products/:productId/files",
  summary: "Add a file for buyers",
  description:
    "One file, at most 50 MiB. A version has at most 20 files, together 200 MiB. A file with an existing name replaces that file; the same bytes under the same name change nothing. The bytes decide the type: text (txt, md, json, jsonl, csv, tsv, yaml), pdf, zip, docx, xlsx, pptx, png, jpeg, webp, gif or avif. File name and media type must agree with it. If the product has been published, this creates a new immutable version (a minor bump).",
  access,
  params,
  request: {
    kind: "upload",
    maxBytes: MAX_FILE_BYTES,
    fields: z.strictObject({
      changelog: visibleText(5_000).describe("The changelog of the new version").optional(),
    }),
    example: { changelog: "With a worked example." },
  },
  response: created(ProductFile.extend({ version })),
  errors,
});

export const deleteFile = endpoint({
  name: "files.delete",
  method: "DELETE",
  path: "/products/:productId/files/:fileId",
  summary: "Remove a file",
  description:
    "If the product has been published, this creates a new version without the file; buyers of older major versions keep it.",
  access,
  params: params.extend({ fileId: z.string() }),
  response: one(z.object({ id: z.string(), version })),
  errors: [...errors, "FILE_NOT_FOUND"],
});

export const createImage = endpoint({
  name: "images.create",
  method: "POST",
  path: "/products/:productId/images",
  summary: "Add an image to a product",
  description:
    "PNG, JPEG, WebP, GIF (its first frame) or AVIF, at most 10 MiB and 40 megapixels. A product has at most 10 images; the first is its cover. The service encodes it again as WebP in three widths, without metadata.",
  tag: "files",
  access,
  params,
  request: {
    kind: "upload",
    maxBytes: MAX_IMAGE_BYTES,
    fields: z.strictObject({
      alt: visibleText(300).describe("A description for people who cannot see the image").optional(),
    }),
    example: { alt: "A haiku about rain" },
  },
  response: created(ProductImage),
  errors,
});

export const MAX_IMAGES = 10;

const UpdateImage = z
  .strictObject({
    alt: visibleText(300).describe("A description for people who cannot see the image"),
    position: z
      .int()
      .min(1)
      .max(MAX_IMAGES)
      .describe("Its place among the images, from 1; the first is the cover. Beyond the last: the last"),
  })
  .partial()
  .meta({ id: "UpdateImage" });

export type UpdateImage = z.output<typeof UpdateImage>;

export const updateImage = endpoint({
  name: "images.update",
  method: "PATCH",
  path: "/products/:productId/images/:imageId",
  summary: "Describe an image, or move it",
  tag: "files",
  access,
  params: params.extend({ imageId: z.string() }),
  request: json(UpdateImage, { alt: "A haiku about rain", position: 1 }),
  response: one(ProductImage),
  errors: [...errors, "IMAGE_NOT_FOUND"],
});

export const deleteImage = endpoint({
  name: "images.delete",
  method: "DELETE",
  path: "/products/:productId/images/:imageId",
  summary: "Remove an image",
  tag: "files",
  access,
  params: params.extend({ imageId: z.string() }),
  response: one(z.object({ id: z.string() })),
  errors: [...errors, "IMAGE_NOT_FOUND"],
});
