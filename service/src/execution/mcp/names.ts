import { slugOf } from "../../core/slug.ts";

const SLUG_CHARACTERS = 30;
const RUN = "run_";
/** The last part of a product's UUID: 48 random bits, enough for the products of one user. */
const ID_SUFFIX = /_([0-9a-f]{12})$/;

interface NamedProduct {
  id: string;
  title: string;
}

/**
 * The name of a product in MCP. Only its end identifies the product, so a name survives a new title. At most 43 characters, 47 for
 * a tool: clients add prefixes and allow 64.
 */
export const toPromptName = ({ id, title }: NamedProduct): string =>
  `${slugOf(title).slice(0, SLUG_CHARACTERS).replace(/-+$/, "")}_${id.slice(-12)}`;

export const toToolName = (product: NamedProduct): string => RUN + toPromptName(product);

/** The end of the product's id; null: no name of a product. */
export const parseIdSuffix = (promptName: string): string | null => ID_SUFFIX.exec(promptName)?.[1] ?? null;

/** null: no name of a product's tool. */
export const parsePromptName = (toolName: string): string | null =>
  toolName.startsWith(RUN) ? toolName.slice(RUN.length) : null;
