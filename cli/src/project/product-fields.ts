import { createHash } from "node:crypto";
import type { ProductDetail } from "@stoa/sdk";

/** Values by the names of POST /products. */
export type Fields = Record<string, unknown>;

/** Fields that both the file and the service have, in the order of a new file. The content is last. */
export const syncedFields = [
  "title",
  "description",
  "lang",
  "type",
  "category",
  "price",
  "currency",
  "commissionBasisPoints",
  "tags",
  "compatibility",
  "models",
  "requirements",
  "features",
  "license",
  "samples",
  "preview",
  "contentFormat",
  "variables",
  "content",
] as const;

/** They are sent with a new version, and a pull does not write them. */
export const versionFields = ["version", "changelog"] as const;

/** The alternative texts of images, by file name. */
export const IMAGES_FIELD = "images";

export const frontMatterFields: readonly string[] = [
  ...syncedFields.filter((field) => field !== "content"),
  ...versionFields,
  IMAGES_FIELD,
];

/** The fields of a product as its file has them. */
export function toFields(product: ProductDetail): Fields {
  const fields: Fields = {};
  for (const field of syncedFields)
    if (field !== "preview") fields[field] = (product as unknown as Fields)[field];
  return { ...fields, samples: product.samples.map(withoutServiceFields), preview: authorsPreview(product) };
}

/** The service sets the time and the receipt of a sample. */
const withoutServiceFields = ({
  createdAt: _createdAt,
  receipt: _receipt,
  ...sample
}: ProductDetail["samples"][number]) => sample;

/** Without a preview of the author's, the service shows the beginning of the content. */
function authorsPreview({ contentPreview, content }: ProductDetail): string {
  const isBeginning = contentPreview.endsWith("…") && content?.startsWith(contentPreview.slice(0, -1));
  return isBeginning ? "" : contentPreview;
}

/** Fields that a new file always has. */
const usualFields: ReadonlySet<string> = new Set([
  "title",
  "description",
  "type",
  "price",
  "currency",
  "tags",
]);

/** Whether a new file has the field. The file leaves out what is not set, and what the service derives. */
export function isWorthWriting(field: string, value: unknown, product: Fields): boolean {
  if (field === "commissionBasisPoints") return false;
  if (field === "contentFormat") return value === "messages";
  if (field === "variables") return product["type"] === "PROMPT" && hasDescription(value);
  return usualFields.has(field) || !isEmpty(value);
}

/** The service derives names and defaults; everything else was declared. */
const hasDescription = (variables: unknown): boolean =>
  Array.isArray(variables) &&
  variables.some((variable: object) =>
    ["description", "enum", "maxLength"].some((name) => Object.hasOwn(variable, name)),
  );

export const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === "" ||
  (typeof value === "object" && Object.keys(value).length === 0);

/** Equal for values that mean the same: the layout of a workflow's JSON and blank ends of texts do not count. */
export const fingerprints = (fields: Fields): Record<string, string> =>
  Object.fromEntries(
    syncedFields
      .filter((field) => fields[field] !== undefined)
      .map((field) => [field, hash(JSON.stringify(normalize(field, fields)))]),
  );

const hash = (text: string) => createHash("sha256").update(text).digest("hex");

function normalize(field: string, fields: Fields): unknown {
  const value = fields[field];
  if (typeof value !== "string") return value;
  if (field !== "content") return value.replaceAll("\r\n", "\n").trim();
  return fields["type"] === "WORKFLOW" ? parseOrKeep(value) : value;
}

function parseOrKeep(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
