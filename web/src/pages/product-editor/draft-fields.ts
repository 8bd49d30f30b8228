import { contentPreview } from "@stoa/contract/content-preview";
import type { ProductDetail, SampleInput, UpdateProduct, Variable } from "@stoa/sdk";
import { reconcileVariables } from "../../lib/prompt-variables.ts";
import type { EditorTab } from "../../queries/product-editor.ts";

/** What the editor edits, as typed. */
export interface Draft {
  title: string;
  description: string;
  category: string;
  lang: string;
  tags: string[];
  requirements: string[];
  features: string[];
  license: string;
  compatibility: string[];
  models: Record<string, string>;
  price: string;
  currency: string;
  /** In percent. */
  commission: string;
  content: string;
  contentFormat: "text" | "messages";
  variables: Variable[];
  preview: string;
  samples: SampleInput[];
}

export type DraftField = keyof Draft;

/** The name of each field for people, and the tab that has it. */
export const FIELDS: Record<DraftField, { label: string; tab: EditorTab }> = {
  title: { label: "Title", tab: "details" },
  description: { label: "Description", tab: "details" },
  category: { label: "Category", tab: "details" },
  lang: { label: "Language", tab: "details" },
  tags: { label: "Tags", tab: "details" },
  requirements: { label: "What buyers need", tab: "details" },
  features: { label: "Features", tab: "details" },
  license: { label: "License", tab: "details" },
  compatibility: { label: "Providers", tab: "details" },
  models: { label: "Default models", tab: "details" },
  price: { label: "Price", tab: "price" },
  currency: { label: "Currency", tab: "price" },
  commission: { label: "Commission", tab: "referrals" },
  content: { label: "Prompt", tab: "prompt" },
  contentFormat: { label: "Form of the prompt", tab: "prompt" },
  variables: { label: "Variables", tab: "prompt" },
  preview: { label: "Public preview", tab: "details" },
  samples: { label: "Sample outputs", tab: "samples" },
};

export const DRAFT_FIELDS = Object.keys(FIELDS) as DraftField[];

/** After the first publication, a change of these makes a new version. */
export const VERSIONED_FIELDS: DraftField[] = ["content", "contentFormat", "variables"];

export function toDraft(product: ProductDetail): Draft {
  const content = product.content ?? "";
  const contentFormat = product.contentFormat === "messages" ? "messages" : "text";
  return {
    title: product.title,
    description: product.description,
    category: product.category ?? "",
    lang: product.lang ?? "",
    tags: product.tags,
    requirements: product.requirements,
    features: product.features,
    license: product.license ?? "",
    compatibility: product.compatibility,
    models: product.models,
    price: String(product.price),
    currency: product.currency,
    commission: String(product.commissionBasisPoints / 100),
    content,
    contentFormat,
    variables: reconcileVariables(content, contentFormat, product.variables),
    // The API has one text for both: an own preview, or the beginning of the content.
    preview: product.contentPreview === contentPreview("", content) ? "" : product.contentPreview,
    samples: product.samples,
  };
}

export const isSame = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

export const changedFields = (from: Draft, to: Draft): DraftField[] =>
  DRAFT_FIELDS.filter((field) => !isSame(from[field], to[field]));

const list = (texts: string[]) => texts.map((text) => text.trim()).filter((text) => text !== "");

/** The request that stores the fields. Content and variables go together: the service compares them. */
export function toUpdate(draft: Draft, fields: DraftField[]): UpdateProduct {
  const values: { [field in DraftField]: () => UpdateProduct } = {
    title: () => ({ title: draft.title }),
    description: () => ({ description: draft.description }),
    category: () => ({ category: draft.category }),
    lang: () => ({ lang: draft.lang }),
    tags: () => ({ tags: list(draft.tags) }),
    requirements: () => ({ requirements: list(draft.requirements) }),
    features: () => ({ features: list(draft.features) }),
    license: () => ({ license: draft.license.trim() === "" ? null : draft.license }),
    compatibility: () => ({ compatibility: draft.compatibility as UpdateProduct["compatibility"] & {} }),
    models: () => ({ models: draft.models }),
    price: () => ({ price: Number(draft.price) }),
    currency: () => ({ currency: draft.currency }),
    commission: () => ({ commissionBasisPoints: Math.round(Number(draft.commission) * 100) }),
    content: () => promptOf(draft),
    contentFormat: () => promptOf(draft),
    variables: () => promptOf(draft),
    preview: () => ({ preview: draft.preview }),
    samples: () => ({ samples: draft.samples }),
  };
  return Object.assign({}, ...fields.map((field) => values[field]()));
}

export const promptOf = ({ content, contentFormat, variables }: Draft) => ({
  content,
  contentFormat,
  variables,
});

/** The field of a problem that the service names, such as `content[1].role`; null: none of the form. */
export function fieldOfPath(path: string): DraftField | null {
  const [name = ""] = path.replace(/^draft\./, "").split(/[.[]/);
  if (name === "commissionBasisPoints") return "commission";
  return DRAFT_FIELDS.find((field) => field === name) ?? null;
}
