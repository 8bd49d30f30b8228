import { slugOf } from "../../core/slug.ts";

const SLUG_CHARACTERS = 30;
const RUN = "run_";
/** The last part of a product's uuid: 48 random bits, which a person's products will not share. */
const ID_SUFFIX = /_([0-9a-f]{12})$/;

interface NamedProduct {
  id: string;
  title: string;
}

/**
 * What a product is called here. Its end alone says which one it is, so that a name that a client remembers goes on working when
 * the title changes. At most 43 characters, 47 of a tool, for clients put names of their own before it and take 64 in all.
 */
export const toPromptName = ({ id, title }: NamedProduct): string =>
  `${slugOf(title).slice(0, SLUG_CHARACTERS).replace(/-+$/, "")}_${id.slice(-12)}`;

export const toToolName = (product: NamedProduct): string => RUN + toPromptName(product);

/** The end of the id of the product that is named; null: no product is called so. */
export const parseIdSuffix = (promptName: string): string | null => ID_SUFFIX.exec(promptName)?.[1] ?? null;

/** null: no tool that runs a product is called so. */
export const parsePromptName = (toolName: string): string | null =>
  toolName.startsWith(RUN) ? toolName.slice(RUN.length) : null;
