import { z } from "zod";
import { authorFields } from "../accounts/seller-profile.ts";
import { created, endpoint, json, listOf, one } from "../core/endpoint.ts";
import { Amount, Currency, paging, Timestamp } from "../core/envelope.ts";
import { Provider, providers } from "../core/providers.ts";
import { SignedRunReceipt } from "../core/signed-run-receipt.ts";
import { visibleLine, visibleText } from "../core/visible-text.ts";
import { Variable } from "../formats/variables.ts";
import { ProductFile, ProductImage } from "./files.ts";
import { Moderation, ProductStatus, StatusChange } from "./lifecycle.ts";
import { ProductScan } from "./product-scans.ts";
import { CardScore, ScoreCard } from "./score-card.ts";
import { SemanticVersion } from "./versions.ts";

export const productTypes = ["PROMPT", "WORKFLOW"] as const;
const ProductType = z.enum(productTypes).describe("New values may be added");
const line = visibleLine;
const author = z.object({ ...authorFields, verified: z.boolean() });
const shared = {
  id: z.string(),
  title: z.string(),
  description: z.string(),
  lang: z.string().nullable().describe("BCP 47; null: not set"),
  type: ProductType,
  status: ProductStatus,
  category: z.string().nullable(),
  price: Amount,
  currency: Currency,
  compatibility: z.array(z.string()),
  tags: z.array(z.string()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  publishedAt: Timestamp.nullable(),
};

export const ProductCard = z
  .object({
    ...shared,
    image: z.string().nullable().describe("The cover, 640 wide; null: it has none"),
    author,
    rating: z.object({ average: z.number(), count: z.int() }),
    stats: z.object({ views: z.int(), purchases: z.int() }),
    score: CardScore.nullable().describe(
      "Of the released version: the model of testedOn, else the one with the highest lower bound; null: not measured",
    ),
  })
  .meta({ id: "ProductCard", description: "A product as lists show it." });

const SampleFields = z.object({
  input: z
    .record(z.string(), z.unknown())
    .describe("A prompt's variables, each a string; a workflow's input"),
  output: z.unknown().describe("A prompt's text; a workflow's result"),
  model: z.string().describe("The model that wrote the output; for a workflow, those of its steps"),
  executionId: z.string().describe("The author's run that it was copied from; absent: the author typed it"),
  createdAt: Timestamp.describe("When the author ran or typed it"),
  receipt: SignedRunReceipt.describe(
    "The signed receipt of the author's run: with its salt, everybody can verify that the run had this input and output. Absent: typed, or without its invisible characters",
  ),
});

export const ProductSample = SampleFields.partial({ executionId: true, receipt: true }).meta({
  id: "ProductSample",
  description: "An example of what the product makes.",
});

const Dependency = z.object({
  productId: z.string(),
  title: z
    .string()
    .nullable()
    .describe("null, like type, price and currency: you can neither buy nor run it"),
  type: ProductType.nullable(),
  price: Amount.nullable(),
  currency: Currency.nullable(),
  owned: z.boolean().describe("Whether you are its author or bought it"),
  onSale: z.boolean(),
});

export const ProductDetail = z
  .object({
    ...shared,
    author: author.extend({ bio: z.string() }),
    content: z.string().nullable().describe("The whole content; null unless you are its author or own it"),
    contentFormat: z.enum(["text", "messages"]),
    contentPreview: z.string(),
    variables: z.array(Variable),
    models: z.record(z.string(), z.string()).describe("Default model by provider"),
    requirements: z.array(z.string()),
    features: z.array(z.string()),
    license: z.string().nullable().describe("What buyers may do with it: an SPDX id or a short text"),
    samples: z.array(ProductSample),
    version: z.string(),
    changelog: z.string().describe("The changelog of the newest version"),
    files: z
      .array(ProductFile)
      .nullable()
      .describe("Those of your version; null unless you are its author or own it"),
    images: z.array(z.string()).describe("The widest size of each image in the gallery"),
    gallery: z.array(ProductImage),
    stats: z.object({ views: z.int(), purchases: z.int(), rating: z.number(), reviews: z.int() }),
    refundDays: z
      .int()
      .describe(
        "How many days a buyer may request a refund. A product that was never revealed, downloaded or run is refunded at once, but not twice within 30 days. In all other cases the author decides",
      ),
    commissionBasisPoints: z
      .int()
      .describe("The commission of a referrer, as a part of the net price, paid by the author"),
    access: z.object({
      owned: z.boolean(),
      reason: z.enum(["author", "purchased", "none"]),
      revealForfeitsInstantRefund: z
        .boolean()
        .describe("After the first reveal, download or run, the author decides about a refund"),
    }),
    scoreCard: ScoreCard.nullable().describe(
      "What the newest completed evaluation of the released version measured; null: there is none",
    ),
    dependencies: z
      .array(Dependency)
      .describe("Products that a workflow runs, directly or through another one; a buyer needs each of them"),
    totalPrice: Amount.nullable().describe(
      "The price with the dependencies that you do not own; null: one is not on sale or in another currency",
    ),
    tryOut: z
      .object({
        model: z.string().nullable().describe("null: the default of the seller's provider"),
        isSandbox: z.boolean().describe("true: no model answers, in a test environment"),
        perVisitor: z.int().describe("How often one visitor may try it in a day (UTC)"),
        leftToday: z.int().describe("How often all visitors together may still try it today"),
        captcha: z
          .object({ provider: z.enum(["turnstile", "hcaptcha"]), siteKey: z.string() })
          .nullable()
          .describe("The captcha that guests must solve; null: none"),
      })
      .nullable()
      .describe("POST /products/{productId}/try runs it on the seller's key; null: it cannot be tried"),
    moderation: Moderation.nullable().describe("For its author and administrators; null: no moderation"),
    scan: ProductScan.nullable().describe("Of the version that you get; null: it was not scanned"),
  })
  .meta({ id: "ProductDetail" });

const price = z
  .number()
  .positive("price must be positive")
  .describe("In the unit of the currency; at most 99,999,999 of its minor units");
const words = (count: number, length: number) => z.array(line(length)).max(count);
const tags = z
  .array(line(40).transform((tag) => tag.toLowerCase()))
  .max(20)
  .transform((list) => [...new Set(list)]);
const compatibility = z
  .array(Provider)
  .max(providers.length)
  .transform((list) => [...new Set(list)])
  .describe("A new workflow without it gets the providers of its steps");

export const MAX_SAMPLES = 5;
/** Of its input and of its output; of a workflow, as JSON. */
export const MAX_SAMPLE_CHARACTERS = 20_000;
/** Of its input and output together: five samples fit into one request. */
export const MAX_SAMPLE_MEMBERS = 200;
export const MAX_SAMPLE_LEVELS = 32;

const SampleInput = z
  .strictObject({
    ...SampleFields.partial().shape,
    model: line(200)
      .optional()
      .describe(SampleFields.shape.model.description ?? ""),
    executionId: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .describe(
        "A completed run of yours of this product with stored texts. Input, output and model are copied from it, and stay when the run is deleted. If you send them too, they must be the same",
      ),
    createdAt: Timestamp.optional().describe("Ignored, so that you can send back what you read"),
    receipt: z.unknown().optional().describe("Ignored, as createdAt"),
  })
  .meta({ id: "SampleInput", description: "Either input, output and model, or executionId." });

const fields = {
  title: line(120),
  description: visibleText(10_000),
  lang: z
    .string()
    .max(35)
    .regex(/^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$/, "must be a BCP 47 tag such as en or pt-BR")
    .describe("The language of the content: BCP 47"),
  type: z.enum(productTypes),
  category: line(60).describe("A slug of GET /categories"),
  price,
  content: z
    .string()
    .min(1)
    .max(200_000)
    .describe("A prompt's text or messages, or the JSON text of a workflow/1 definition"),
  contentFormat: z
    .enum(["text", "messages"])
    .describe("text: content is one user message; messages: content is a JSON array of {role, content}"),
  preview: visibleText(2_000).describe("The part of the content that everybody may read"),
  requirements: words(50, 500),
  features: words(50, 500),
  license: line(100)
    .nullable()
    .describe("What buyers may do with it: an SPDX id such as CC-BY-4.0, or a short text"),
  samples: z
    .array(SampleInput)
    .max(MAX_SAMPLES)
    .describe(
      `Public examples of what it makes, without invisible characters. The input and the output of a sample have at most ${MAX_SAMPLE_CHARACTERS.toLocaleString("en")} characters each (as JSON for a workflow), and together at most ${MAX_SAMPLE_MEMBERS} members in ${MAX_SAMPLE_LEVELS} levels`,
    ),
  tags,
  compatibility,
  version: SemanticVersion,
  changelog: visibleText(5_000).describe("The changelog of the new version"),
  currency: Currency,
  variables: z.array(Variable).max(100).describe("Derived from the content if absent"),
  models: z.partialRecord(Provider, line(200)).describe("Default model by provider"),
  commissionBasisPoints: z
    .int()
    .min(0)
    .max(10_000)
    .nullable()
    .describe(
      "The commission of a referrer, as a part of the net price, from your part; null: the rate of your account",
    ),
};

export const CreateProduct = z
  .strictObject({
    ...fields,
    description: fields.description.default(""),
    lang: fields.lang.nullable().default(null),
    category: fields.category.optional(),
    contentFormat: fields.contentFormat.default("text"),
    preview: fields.preview.optional(),
    requirements: fields.requirements.default([]),
    features: fields.features.default([]),
    license: fields.license.default(null),
    samples: fields.samples.default([]),
    tags: fields.tags.default([]),
    compatibility: fields.compatibility.default([]),
    version: fields.version.default("1.0.0"),
    changelog: fields.changelog.default(""),
    currency: fields.currency.optional(),
    variables: fields.variables.optional(),
    models: fields.models.default({}),
    commissionBasisPoints: fields.commissionBasisPoints.default(null),
  })
  .meta({ id: "CreateProduct" });

export const UpdateProduct = z
  .strictObject({
    ...fields,
    type: fields.type.describe(
      "Can change until the product is first published; the content is checked again",
    ),
    acknowledgesRegression: z
      .boolean()
      .describe(
        "With a new version: true if it passes fewer tests than the version on sale, which its changelog then tells buyers. Required if evaluations of both measured that beyond their intervals",
      ),
  })
  .partial()
  .meta({ id: "UpdateProduct" });

export const ProductWarning = z
  .object({
    field: z.string().describe("The place in your request, such as content.steps[0].messages[1].content"),
    reason: z.string().describe("The likely mistake, and how to fix it"),
  })
  .meta({ id: "ProductWarning" });
const warnings = z
  .array(ProductWarning)
  .describe(
    "Likely mistakes in the saved content; empty if there are none. Today: tags of other template languages, such as {{#if}}, {{> x}} or {% if %}, invisible characters, and what moderators get as a high or medium finding of the scan. The model gets all of it unchanged: remove it, or write \\{{ for literal braces",
  );
const UpdatedProduct = z
  .object({ ...ProductDetail.shape, warnings })
  .meta({ id: "UpdatedProduct", description: "A product after a change, with warnings about its content." });

export type ProductWarning = z.infer<typeof ProductWarning>;
export type ProductSample = z.infer<typeof ProductSample>;
export type SampleInput = z.output<typeof SampleInput>;
export type ProductCard = z.infer<typeof ProductCard>;
export type ProductDetail = z.input<typeof ProductDetail>;
export type CreateProduct = z.output<typeof CreateProduct>;
export type UpdateProduct = z.output<typeof UpdateProduct>;

const reads = { who: "visitor", permission: "products:read" } as const;
const writes = { who: "member", permission: "products:write" } as const;
const params = z.object({ productId: z.string() });

const readContent = z
  .enum(["true", "false"])
  .default("true")
  .transform((text) => text === "true")
  .pipe(z.boolean())
  .describe("Whether the response has the content, for those who may read it");

export const get = endpoint({
  name: "products.get",
  method: "GET",
  path: "/products/:productId",
  summary: "Read one product",
  description:
    "With `content=false`, `content` is null for its owners, too. The request then does not count as a buyer's first use, which would end the instant refund.",
  access: reads,
  params,
  query: z.strictObject({ content: readContent }),
  response: one(ProductDetail),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const create = endpoint({
  name: "products.create",
  method: "POST",
  path: "/products",
  summary: "Create a product as a draft",
  description: "Your first product makes you a seller.",
  access: writes,
  request: json(CreateProduct, {
    title: "Haiku about anything",
    description: "Three lines on the topic that you name.",
    type: "PROMPT",
    category: "writing",
    price: 4.99,
    content: "Write a haiku about {{topic}} in {{language=English}}.",
    tags: ["poetry"],
    compatibility: ["openai", "anthropic"],
  }),
  response: created(z.object({ id: z.string(), status: z.literal("draft"), message: z.string(), warnings })),
  errors: ["VALIDATION_ERROR"],
});

export const update = endpoint({
  name: "products.update",
  method: "PATCH",
  path: "/products/:productId",
  summary: "Change some fields of a product",
  description:
    "Only the fields that you send change. After the first publication, a change of the content creates a new immutable version (a minor bump unless you give one). A version of the same major line must accept the inputs of the version before. Otherwise 422 names the variable, and a new major version is needed. Under moderation, an unverified seller can change only price and commission of a product on sale; unpublish it for other changes.",
  access: writes,
  params,
  request: json(UpdateProduct, { price: 6.5, tags: ["poetry", "japanese"] }),
  response: one(UpdatedProduct),
  supportsIfMatch: true,
  errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR", "INVALID_STATE"],
});

const action = (name: string, verb: string, summary: string, description?: string) =>
  endpoint({
    ...(description && { description }),
    name: `products.${name}`,
    method: "POST",
    path: `/products/:productId/${verb}`,
    summary,
    access: writes,
    params,
    response: one(ProductDetail),
    errors: ["PRODUCT_NOT_FOUND", "VALIDATION_ERROR", "INVALID_STATE"],
  });

export const publish = action(
  "publish",
  "publish",
  "Offer a product for sale",
  "Where moderation is on, an unverified seller's product waits for a moderator: its status is pending_review.",
);
export const withdraw = action(
  "withdraw",
  "withdraw",
  "Take back what waits for moderators; it is a draft again",
);
export const unpublish = action("unpublish", "unpublish", "Take a product off sale; buyers keep access");

export const deleteProduct = endpoint({
  name: "products.delete",
  method: "DELETE",
  path: "/products/:productId",
  summary: "Delete a product; buyers keep access",
  access: writes,
  params,
  response: one(
    z.object({
      id: z.string(),
      status: z.literal("deleted"),
      deletedAt: Timestamp,
      message: z.string(),
    }),
  ),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const MAX_SIMILAR = 24;

export const similar = endpoint({
  name: "products.similar",
  method: "GET",
  path: "/products/:productId/similar",
  summary: "List products that are like this one",
  description: `Products on sale with tags in common, of the same category and type, or with a similar title; the most similar first, at most ${MAX_SIMILAR}.`,
  access: { who: "visitor", permission: "products:read" },
  params,
  query: z.strictObject(paging),
  response: listOf(ProductCard),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const history = endpoint({
  name: "products.history",
  method: "GET",
  path: "/products/:productId/history",
  summary: "Read the status changes of a product and their reasons, newest first",
  description: "For its author and administrators.",
  access: { who: "member", permission: "products:read" },
  params,
  query: z.strictObject(paging),
  response: listOf(StatusChange),
  errors: ["PRODUCT_NOT_FOUND"],
});
