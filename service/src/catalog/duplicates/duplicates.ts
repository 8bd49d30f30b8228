import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { toComparableText } from "./comparable-text.ts";
import { createFingerprint, estimateSimilarity } from "./minhash.ts";
import {
  type BandMatch,
  type FingerprintedProduct,
  type FingerprintRow,
  listByBands,
  listByTitleKeys,
  listFingerprinted,
  upsertFingerprints,
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

/** A product's text with its fingerprint, which takes up to a millisecond for usual texts. */
export interface ProductFingerprint extends FingerprintRow {
  text: string;
}

export function fingerprintProduct(
  product: Pick<FingerprintedProduct, "id" | "type" | "title" | "content" | "contentFormat">,
): ProductFingerprint {
  const text = toComparableText(product);
  return { productId: product.id, text, ...createFingerprint(text), titleKeys: titleKeys(product.title) };
}

/** The products are as they were read until now. */
export const storeFingerprints = (ctx: Context, fingerprints: ProductFingerprint[]): Promise<unknown> =>
  upsertFingerprints(
    ctx.db,
    ctx.now(),
    fingerprints.map(({ text: _, ...row }) => row),
  );

export interface NearDuplicate {
  product: FingerprintedProduct;
  similarity: number;
}

/** For each product published ones, or ones that once were, with nearly the same text; the most similar first. */
export async function findNearDuplicates(
  db: Queries,
  fingerprints: ProductFingerprint[],
): Promise<NearDuplicate[][]> {
  const asked = fingerprints.map(({ bands, productId: ownId }) => ({ bands, ownId }));
  const matches = Map.groupBy(await listByBands(db, asked, MAX_CANDIDATES), ({ nth }) => nth);
  const duplicates: NearDuplicate[][] = [];
  // One text after the other: the candidates of all may be large.
  for (const [nth, fingerprint] of fingerprints.entries()) {
    const likely = listLikely(fingerprint, matches.get(nth) ?? []);
    duplicates.push(await compareTexts(db, fingerprint, likely));
  }
  return duplicates;
}

const listLikely = ({ signature }: ProductFingerprint, matches: BandMatch[]): string[] =>
  matches
    .map(({ productId, signature: other }) => ({ productId, estimate: estimateSimilarity(signature, other) }))
    .filter(({ estimate }) => estimate >= LEAST_ESTIMATE)
    .toSorted((a, b) => b.estimate - a.estimate)
    .slice(0, MAX_COMPARED)
    .map(({ productId }) => productId);

async function compareTexts(
  db: Queries,
  { text }: ProductFingerprint,
  likely: string[],
): Promise<NearDuplicate[]> {
  if (likely.length === 0) return [];
  const compareText = createTextComparison(text);
  return (await listFingerprinted(db, likely))
    .map((other) => ({ product: other, similarity: compareText(toComparableText(other)) }))
    .filter(({ similarity }) => similarity >= NEAR_DUPLICATE)
    .toSorted((a, b) => b.similarity - a.similarity);
}

/** For each product those of other sellers that sold more under almost the same title; the best seller first. */
export async function findLookAlikes(
  db: Queries,
  products: Pick<FingerprintedProduct, "title" | "authorId" | "purchases">[],
): Promise<FingerprintedProduct[][]> {
  const asked = products.map(({ title, authorId, purchases }) => ({
    keys: lookAlikeKeys(title),
    authorId,
    purchases,
  }));
  const matches = Map.groupBy(await listByTitleKeys(db, asked, MAX_TITLES), ({ nth }) => nth);
  const lookAlikes: FingerprintedProduct[][] = [];
  for (const [nth, { title }] of products.entries()) {
    const ids = (matches.get(nth) ?? [])
      .filter((match) => isLookAlike(title, match.title))
      .slice(0, MAX_COMPARED)
      .map(({ productId }) => productId);
    const found = await listFingerprinted(db, ids);
    lookAlikes.push(found.toSorted((a, b) => b.purchases - a.purchases));
  }
  return lookAlikes;
}
