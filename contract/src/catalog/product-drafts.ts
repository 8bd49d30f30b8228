import { z } from "zod";
import { endpoint, json, one } from "../core/endpoint.ts";
import { Timestamp } from "../core/envelope.ts";

const changes = z.record(z.string().min(1).max(100), z.unknown()).nullable();

export const SetProductDraft = z
  .strictObject({ changes: changes.describe("A JSON object; null deletes the draft") })
  .meta({ id: "SetProductDraft" });

export const ProductDraft = z
  .object({
    changes: changes.describe("As they were sent; null: there is no draft"),
    savedAt: Timestamp.nullable(),
  })
  .meta({ id: "ProductDraft", description: "Changes of a product that its author has not published." });

export type SetProductDraft = z.output<typeof SetProductDraft>;
export type ProductDraft = z.input<typeof ProductDraft>;

const access = { who: "member", permission: "products:write" } as const;
const params = z.object({ productId: z.string() });

export const get = endpoint({
  name: "products.draft.get",
  method: "GET",
  path: "/products/:productId/draft",
  summary: "Read the changes of a product that its author has not published",
  access,
  params,
  response: one(ProductDraft),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const set = endpoint({
  name: "products.draft.set",
  method: "PUT",
  path: "/products/:productId/draft",
  summary: "Save changes of a product without publishing them",
  description:
    "For editors: the service stores the object as it is, and neither checks nor publishes it. Publish by PATCH /products/{productId}. Send If-Match with the ETag of the draft that you read: if it has changed since, nothing is saved (412). The draft is deleted with the product or the account.",
  access,
  params,
  request: json(SetProductDraft, { changes: { title: "Haiku about any season" } }),
  response: one(ProductDraft),
  supportsIfMatch: true,
  errors: ["PRODUCT_NOT_FOUND"],
});
