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

/** What a product is to lists: its state, but for one on sale whose author is banned. */
const standingOf = ({ status, authorBannedAt }: Listed) =>
  status === "published" && authorBannedAt !== null ? "withheld" : status;

type Listed = CardFacts & { authorBannedAt: Date | null };

/** Lists a product anew, by what it is now: to be called in the transaction of every change of one, and of a ban of its author. */
export async function relist(tx: Tx, product: Listed): Promise<void> {
  const status = standingOf(product);
  await writeListing(tx, { ...product, status, title: fold(product.title), search: toVector(product) });
  if (product.status !== "deleted") await writeWords(tx, knownWords(product), status === "published");
  if (product.status !== "draft") await tellOfChange(tx);
}

/** What lists show has changed, in another way than by a product. */
export const tellLists = (tx: Tx): Promise<unknown> => tellOfChange(tx);
