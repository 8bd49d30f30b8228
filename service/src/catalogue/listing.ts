import type { Tx } from "../db/database.ts";
import type { CardFacts } from "./card.ts";
import { tellOfChange, writeListing, writeWords } from "./queries.ts";
import { toVector } from "./search.ts";
import { fold, MIN_KNOWN_CHARACTERS, wordsOf } from "./words.ts";

/** Words that may be asked for by their beginning, or mistyped. */
const knownWords = ({ title, tags, description }: CardFacts): string[] => {
  const words = wordsOf(`${title} ${tags.join(" ")} ${description}`, "stored");
  return [...new Set(words)].filter((word) => word.length >= MIN_KNOWN_CHARACTERS);
};

/** Lists a product anew, by what it is now: to be called in the transaction of every change of one. */
export async function relist(tx: Tx, product: CardFacts): Promise<void> {
  await writeListing(tx, { ...product, title: fold(product.title), search: toVector(product) });
  if (product.status !== "deleted") await writeWords(tx, knownWords(product), product.status === "published");
  if (product.status !== "draft") await tellOfChange(tx);
}

/** What lists show has changed, in another way than by a product. */
export const tellLists = (tx: Tx): Promise<unknown> => tellOfChange(tx);
