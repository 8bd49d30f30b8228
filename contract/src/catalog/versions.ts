import { z } from "zod";
import { endpoint, listOf, one } from "../core/endpoint.ts";
import { paging, Timestamp } from "../core/envelope.ts";
import { Variable } from "../formats/variables.ts";
import { ProductFile } from "./files.ts";

export const SEMANTIC_VERSION = /^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$/;
export const SemanticVersion = z
  .string()
  .max(40)
  .regex(SEMANTIC_VERSION, "must be a semantic version such as 1.0.0")
  .describe("Semantic version");

const versionFields = {
  version: z.string(),
  changelog: z.string(),
  acknowledgesRegression: z
    .boolean()
    .describe("Whether the seller says that it passes fewer tests than the version before"),
  createdAt: Timestamp,
  current: z.boolean().describe("The version that you get if you name none"),
};

export const Version = z
  .object({ ...versionFields, readable: z.boolean().describe("Whether you may read its content") })
  .meta({ id: "Version" });

export const VersionDetail = z
  .object({
    ...versionFields,
    content: z.string(),
    contentFormat: z.enum(["text", "messages"]),
    variables: z.array(Variable),
    files: z.array(ProductFile),
  })
  .meta({ id: "VersionDetail" });

export type Version = z.input<typeof Version>;
export type VersionDetail = z.input<typeof VersionDetail>;

export const list = endpoint({
  name: "products.versions.list",
  method: "GET",
  path: "/products/:productId/versions",
  summary: "List the versions of a product, newest first",
  description: "Every member who sees the product can read changelogs, but not contents.",
  access: { who: "member", permission: "products:read" },
  params: z.object({ productId: z.string() }),
  query: z.strictObject(paging),
  response: listOf(Version),
  errors: ["PRODUCT_NOT_FOUND"],
});

export const get = endpoint({
  name: "products.versions.get",
  method: "GET",
  path: "/products/:productId/versions/:version",
  summary: "Read one version of a product with its content and files",
  description: "For its author and administrators, and for buyers within the major version that they bought.",
  access: { who: "member", permission: "products:read" },
  params: z.object({ productId: z.string(), version: z.string() }),
  response: one(VersionDetail),
  errors: ["PRODUCT_NOT_FOUND", "VERSION_NOT_FOUND", "PRODUCT_UNAVAILABLE"],
});
