import type { ProductDetail, Stoa } from "@stoa/sdk";
import { CommandError } from "./errors.ts";
import { withoutControls } from "./output.ts";

const MAX_CANDIDATES = 5;

/** A product by its id, by its whole title, or by words that only it has. */
export async function findProduct(stoa: Stoa, text: string): Promise<ProductDetail> {
  if (/^prod_\w+$/.test(text)) return stoa.products.get(text);
  const { data } = await stoa.products.list({ search: text, limit: MAX_CANDIDATES }).page();
  const exact = data.filter(({ title }) => title.toLowerCase() === text.toLowerCase());
  const [only, ...others] = exact.length > 0 ? exact : data;
  if (!only)
    throw new CommandError(
      `No product is found by ${JSON.stringify(text)}`,
      "`stoa products list --search …` finds products.",
    );
  if (others.length === 0) return stoa.products.get(only.id);
  const candidates = [only, ...others]
    .map(({ id, title }) => `\n  ${id}  ${withoutControls(title)}`)
    .join("");
  throw new CommandError(
    `Several products are found by ${JSON.stringify(text)}:${candidates}`,
    "Name one by its id.",
  );
}
