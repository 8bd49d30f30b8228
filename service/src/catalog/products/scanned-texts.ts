import { formatPath } from "../../core/errors.ts";
import type { ScannedText } from "../../formats/content-scan/finding.ts";
import type { LockedProduct } from "./ownership.ts";

type Words = Pick<
  LockedProduct,
  | "title"
  | "description"
  | "preview"
  | "changelog"
  | "requirements"
  | "features"
  | "license"
  | "tags"
  | "type"
  | "content"
  | "contentFormat"
>;

export interface ScannedProduct extends Words {
  variables: readonly object[];
  samples: readonly { input?: unknown; output?: unknown }[];
  files: readonly { name: string }[];
}

/** The fields of a product whose change needs a new scan. */
export const SCANNED_FIELDS: ReadonlySet<string> = new Set<keyof ScannedProduct>([
  "title",
  "description",
  "preview",
  "changelog",
  "requirements",
  "features",
  "license",
  "tags",
  "variables",
  "type",
  "content",
  "contentFormat",
  "samples",
  "files",
]);

/** In these, each change is scanned; in others, the publication is. */
export const SCANNED_STATUSES: ReadonlySet<string> = new Set(["published", "pending_review"]);

/** Every text of a product that people or models read. Those that buyers read before they buy come first. */
export function listScannedTexts(product: ScannedProduct): ScannedText[] {
  const { title, description, preview, changelog, requirements, features, license, tags, variables } =
    product;
  const shown = { title, description, preview, changelog, requirements, features, license, tags, variables };
  return [
    ...textsIn([], shown, true),
    ...textsIn(
      ["samples"],
      product.samples.map(({ input, output }) => ({ input, output })),
      true,
    ),
    ...textsIn(
      ["files"],
      product.files.map(({ name }) => ({ name })),
      true,
    ),
    ...contentTexts(product),
  ];
}

type Path = (string | number)[];

/** A workflow and messages are JSON: each of its strings is a text, so that a finding names its place. */
function contentTexts({ type, content, contentFormat }: ScannedProduct): ScannedText[] {
  const parsed = type === "WORKFLOW" || contentFormat === "messages" ? parsedOrNull(content) : null;
  return typeof parsed === "object" && parsed !== null
    ? textsIn(["content"], parsed, false)
    : [{ field: "content", text: content, isPublic: false }];
}

function parsedOrNull(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return null;
  }
}

function textsIn(path: Path, value: unknown, isPublic: boolean): ScannedText[] {
  if (typeof value === "string") return [{ field: formatPath(path), text: value, isPublic }];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    textsIn([...path, Array.isArray(value) ? Number(name) : name], inner, isPublic),
  );
}
