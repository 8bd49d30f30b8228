import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { toComparableText } from "./comparable-text.ts";
import { createFingerprint, estimateSimilarity } from "./minhash.ts";
import {
  type FingerprintedProduct,
  listByBands,
  listByTitleKeys,
  listFingerprinted,
  upsertFingerprint,
} from "./queries.ts";
import { createTextComparison } from "./text-similarity.ts";
import { isLookAlike, lookAlikeKeys, titleKeys } from "./title-keys.ts";

/** Jaccard index of runs of three words. */
export const NEAR_DUPLICATE = 0.8;
/** Estimates of 120 hashes have a standard error of 0.05 or less. */
const LEAST_ESTIMATE = 0.6;
const MAX_CANDIDATES = 1_000;
const MAX_COMPARED = 20;
const MAX_TITLES = 500;

interface Compared extends Pick<FingerprintedProduct, "id" | "type" | "content" | "contentFormat"> {}

export async function storeFingerprint(ctx: Context, product: FingerprintedProduct): Promise<void> {
  await upsertFingerprint(ctx.db, {
    productId: product.id,
    createdAt: ctx.now(),
    ...createFingerprint(toComparableText(product)),
    titleKeys: titleKeys(product.title),
  });
}

export interface NearDuplicate {
  product: FingerprintedProduct;
  similarity: number;
}

/** Published products, or ones that once were, with nearly the same text; the most similar first. */
export async function findNearDuplicates(db: Queries, product: Compared): Promise<NearDuplicate[]> {
  const text = toComparableText(product);
  const { bands, signature } = createFingerprint(text);
  if (bands.length === 0) return [];
  const candidates = await listByBands(db, bands, { except: product.id, limit: MAX_CANDIDATES });
  const likely = candidates
    .map(({ productId, signature: other }) => ({ productId, estimate: estimateSimilarity(signature, other) }))
    .filter(({ estimate }) => estimate >= LEAST_ESTIMATE)
    .toSorted((a, b) => b.estimate - a.estimate)
    .slice(0, MAX_COMPARED)
    .map(({ productId }) => productId);
  const compareText = createTextComparison(text);
  return (await listFingerprinted(db, likely))
    .map((other) => ({ product: other, similarity: compareText(toComparableText(other)) }))
    .filter(({ similarity }) => similarity >= NEAR_DUPLICATE)
    .toSorted((a, b) => b.similarity - a.similarity);
}

/** Products of other sellers that sold more under almost the same title; the best seller first. */
export async function findLookAlikes(
  db: Queries,
  { title, authorId, purchases }: Pick<FingerprintedProduct, "title" | "authorId" | "purchases">,
): Promise<FingerprintedProduct[]> {
  const keys = lookAlikeKeys(title);
  if (keys.length === 0) return [];
  const rows = await listByTitleKeys(db, keys, { authorId, purchases, limit: MAX_TITLES });
  const ids = rows
    .filter((row) => isLookAlike(title, row.title))
    .slice(0, MAX_COMPARED)
    .map(({ productId }) => productId);
  const products = await listFingerprinted(db, ids);
  return products.toSorted((a, b) => b.purchases - a.purchases);
}
