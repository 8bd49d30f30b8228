import type { Tx } from "../../platform/db/database.ts";
import { sendInOrder } from "../../platform/db/pipeline.ts";
import type { CardFields } from "./card.ts";
import {
  insertWords,
  type ListedWords,
  type ListingRow,
  notifyCatalogChanged,
  refreshProductScores,
  writeAuthorName,
  writeListings,
} from "./queries.ts";
import { toAuthorTsVector, toTsVector } from "./search-terms.ts";
import { MIN_INDEXED_CHARACTERS, normalizeText, tokenize } from "./tokenizer.ts";

/** Indexed for prefix search and spelling correction. */
const indexedWords = (text: string): string[] =>
  [...new Set(tokenize(text, "stored"))].filter((word) => word.length >= MIN_INDEXED_CHARACTERS);

const searchableText = ({ title, tags, description, authorName }: CardFields): string =>
  `${title} ${tags.join(" ")} ${description} ${authorName}`;

/** A published product of a banned author is not listed. */
const listingStatus = ({ status, authorBannedAt }: ListedProduct) =>
  status === "published" && authorBannedAt !== null ? "withheld" : status;

export type ListedProduct = CardFields & { authorBannedAt: Date | null };

/** Call it in the transaction of each change of products, and of a ban of their author. */
export async function updateListings(tx: Tx, products: ListedProduct[]): Promise<void> {
  const ids = products.map(({ id }) => id);
  const isPublic = products.some(({ status }) => status !== "draft");
  await sendInOrder(tx, [
    () => insertListings(tx, products),
    () => refreshProductScores(tx, ids),
    () => isPublic && notifyCatalogChanged(tx),
  ]);
}

/** New drafts have no scores, and are in no public list. */
export const insertListings = (tx: Tx, products: ListedProduct[]): Promise<unknown> =>
  writeListings(tx, products.map(toListingRow), wordsOf(products));

const toListingRow = (product: ListedProduct): ListingRow => ({
  id: product.id,
  authorId: product.authorId,
  status: listingStatus(product),
  type: product.type,
  category: product.category,
  lang: product.lang,
  currency: product.currency,
  priceMinor: product.priceMinor,
  compatibility: product.compatibility,
  tags: product.tags,
  title: normalizeText(product.title),
  createdAt: product.createdAt,
  updatedAt: product.updatedAt,
  publishedAt: product.publishedAt,
  search: toTsVector(product),
});

function wordsOf(products: ListedProduct[]): ListedWords {
  const words = new Map<string, boolean>();
  for (const product of products) {
    if (product.status === "deleted") continue;
    const isForSale = listingStatus(product) === "published";
    for (const word of indexedWords(searchableText(product)))
      if (isForSale || !words.has(word)) words.set(word, isForSale);
  }
  return words;
}

/** Replaces the searchable name. Call it in the transaction of the change. */
export async function updateListedAuthorName(tx: Tx, author: { id: string; name: string }): Promise<void> {
  const { isForSale } = await writeAuthorName(tx, author.id, toAuthorTsVector(author.name));
  if (isForSale !== null) await insertWords(tx, indexedWords(author.name), isForSale);
}

/** Call it in the transaction that completes an evaluation. */
export async function updateListedScores(tx: Tx, productId: string): Promise<void> {
  await refreshProductScores(tx, [productId]);
  await notifyCatalogChanged(tx);
}

/** For changes of lists without a change of a product. */
export const notifyListsChanged = (tx: Tx): Promise<unknown> => notifyCatalogChanged(tx);
