import type { Tx } from "../../platform/db/database.ts";
import type { CardFields } from "./card.ts";
import { insertWords, notifyCatalogChanged, upsertListing, writeAuthorName } from "./queries.ts";
import { toAuthorTsVector, toTsVector } from "./search-terms.ts";
import { MIN_INDEXED_CHARACTERS, normalizeText, tokenize } from "./tokenizer.ts";

/** Words that may be asked for by their beginning, or mistyped. */
const indexedWords = (text: string): string[] =>
  [...new Set(tokenize(text, "stored"))].filter((word) => word.length >= MIN_INDEXED_CHARACTERS);

const searchableText = ({ title, tags, description, authorName }: CardFields): string =>
  `${title} ${tags.join(" ")} ${description} ${authorName}`;

/** What a product is to lists: its state, but for one on sale whose author is banned. */
const listingStatus = ({ status, authorBannedAt }: ListedProduct) =>
  status === "published" && authorBannedAt !== null ? "withheld" : status;

type ListedProduct = CardFields & { authorBannedAt: Date | null };

/** Lists a product anew, by what it is now: to be called in the transaction of every change of one, and of a ban of its author. */
export async function updateListing(tx: Tx, product: ListedProduct): Promise<void> {
  const status = listingStatus(product);
  await upsertListing(tx, {
    ...product,
    status,
    title: normalizeText(product.title),
    search: toTsVector(product),
  });
  if (product.status !== "deleted")
    await insertWords(tx, indexedWords(searchableText(product)), status === "published");
  if (product.status !== "draft") await notifyCatalogChanged(tx);
}

/** An author's products are found by the new name, and no longer by the old one. To be called in the transaction of the change. */
export async function updateListedAuthorName(tx: Tx, author: { id: string; name: string }): Promise<void> {
  const { isForSale } = await writeAuthorName(tx, author.id, toAuthorTsVector(author.name));
  if (isForSale !== null) await insertWords(tx, indexedWords(author.name), isForSale);
}

/** What lists show has changed, in another way than by a product. */
export const notifyListsChanged = (tx: Tx): Promise<unknown> => notifyCatalogChanged(tx);
