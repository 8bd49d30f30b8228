import type { Tx } from "../../platform/db/database.ts";
import type { CardFacts } from "./card.ts";
import { tellOfChange, writeAuthorName, writeListing, writeWords } from "./queries.ts";
import { toAuthorVector, toVector } from "./search.ts";
import { fold, MIN_KNOWN_CHARACTERS, wordsOf } from "./words.ts";

/** Words that may be asked for by their beginning, or mistyped. */
const knownWords = (text: string): string[] =>
  [...new Set(wordsOf(text, "stored"))].filter((word) => word.length >= MIN_KNOWN_CHARACTERS);

const searchedText = ({ title, tags, description, authorName }: CardFacts): string =>
  `${title} ${tags.join(" ")} ${description} ${authorName}`;

/** What a product is to lists: its state, but for one on sale whose author is banned. */
const standingOf = ({ status, authorBannedAt }: Listed) =>
  status === "published" && authorBannedAt !== null ? "withheld" : status;

type Listed = CardFacts & { authorBannedAt: Date | null };

/** Lists a product anew, by what it is now: to be called in the transaction of every change of one, and of a ban of its author. */
export async function relist(tx: Tx, product: Listed): Promise<void> {
  const status = standingOf(product);
  await writeListing(tx, { ...product, status, title: fold(product.title), search: toVector(product) });
  if (product.status !== "deleted")
    await writeWords(tx, knownWords(searchedText(product)), status === "published");
  if (product.status !== "draft") await tellOfChange(tx);
}

/** An author's products are found by the new name, and no longer by the old one. To be called in the transaction of the change. */
export async function relistAuthorName(tx: Tx, author: { id: string; name: string }): Promise<void> {
  const { isForSale } = await writeAuthorName(tx, author.id, toAuthorVector(author.name));
  if (isForSale !== null) await writeWords(tx, knownWords(author.name), isForSale);
}

/** What lists show has changed, in another way than by a product. */
export const tellLists = (tx: Tx): Promise<unknown> => tellOfChange(tx);
