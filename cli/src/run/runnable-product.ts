import type { ProductDetail, Stoa } from "@stoa/sdk";
import { CommandError } from "../errors.ts";
import { findProduct } from "../find-product.ts";
import { withoutControls } from "../output.ts";

interface Candidate {
  id: string;
  title: string;
}

const MAX_PAGE = 100;

/** A product that the caller owns: by its id, or by words that only it has among the caller's products. */
export async function findRunnableProduct(stoa: Stoa, text: string): Promise<ProductDetail> {
  const product = await find(stoa, text);
  const { owned, reason } = product.access;
  if (owned || reason === "author") return product;
  throw new CommandError(
    `You do not own ${product.id}, “${withoutControls(product.title)}”`,
    `Buy it: stoa buy ${product.id}`,
  );
}

async function find(stoa: Stoa, text: string): Promise<ProductDetail> {
  if (/^prod_\w+$/.test(text)) return stoa.products.get(text);
  const found = matching(await listOwned(stoa), text);
  const [only, ...others] = found;
  // Not owned: the catalogue has it, or not.
  if (!only) return findProduct(stoa, text);
  if (others.length === 0) return stoa.products.get(only.id);
  const candidates = found.map(({ id, title }) => `\n  ${id}  ${withoutControls(title)}`).join("");
  throw new CommandError(
    `Several of your products are found by ${JSON.stringify(text)}:${candidates}`,
    "Name one by its id.",
  );
}

/** What the caller bought or wrote. */
async function listOwned(stoa: Stoa): Promise<Candidate[]> {
  const [purchases, own] = await Promise.all([
    stoa.purchases.list({ limit: MAX_PAGE }).toArray(),
    stoa.products.list({ author: "me", limit: MAX_PAGE }).toArray(),
  ]);
  const candidates = [...purchases.map(({ product }) => product), ...own];
  return [...new Map(candidates.map((each) => [each.id, each])).values()];
}

/** A whole title wins over titles that contain the words. */
function matching(candidates: Candidate[], text: string): Candidate[] {
  const wanted = slugOf(text);
  const exact = candidates.filter(({ title }) => slugOf(title) === wanted);
  return exact.length > 0 ? exact : candidates.filter(({ title }) => slugOf(title).includes(wanted));
}

const slugOf = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "");
