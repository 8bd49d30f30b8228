import type { Tx } from "../../platform/db/database.ts";
import type { CardFields } from "./card.ts";
import {
  insertWords,
  notifyCatalogChanged,
  refreshProductScores,
  upsertListing,
  writeAuthorName,
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

type ListedProduct = CardFields & { authorBannedAt: Date | null };

/** Call it in the transaction of each change of a product, and of a ban of its author. */
export async function updateListing(tx: Tx, product: ListedProduct): Promise<void> {
  await writeListing(tx, product);
  await refreshProductScores(tx, product.id);
  if (product.status !== "draft") await notifyCatalogChanged(tx);
}

/** A new draft has no scores, and is in no public list. */
export const insertDraftListing = (tx: Tx, product: ListedProduct): Promise<void> =>
  writeListing(tx, product);

async function writeListing(tx: Tx, product: ListedProduct): Promise<void> {
  const status = listingStatus(product);
  await upsertListing(tx, {
    ...product,
    status,
    title: normalizeText(product.title),
    search: toTsVector(product),
  });
  if (product.status !== "deleted")
    await insertWords(tx, indexedWords(searchableText(product)), status === "published");
}

/** Replaces the searchable name. Call it in the transaction of the change. */
export async function updateListedAuthorName(tx: Tx, author: { id: string; name: string }): Promise<void> {
  const { isForSale } = await writeAuthorName(tx, author.id, toAuthorTsVector(author.name));
  if (isForSale !== null) await insertWords(tx, indexedWords(author.name), isForSale);
}

/** Call it in the transaction that completes an evaluation. */
export async function updateListedScores(tx: Tx, productId: string): Promise<void> {
  await refreshProductScores(tx, productId);
  await notifyCatalogChanged(tx);
}

/** For changes of lists without a change of a product. */
export const notifyListsChanged = (tx: Tx): Promise<unknown> => notifyCatalogChanged(tx);
