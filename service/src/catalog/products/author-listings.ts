import type { Tx } from "../../platform/db/database.ts";
import { AUTHOR_PREFIX, renderAuthor } from "../search/card.ts";
import { notifyListsChanged, updateListedAuthorName, updateListing } from "../search/listing.ts";
import { lockProductsOf, replaceAuthorInCards } from "./queries.ts";

/** An author changed what products show of them. To be called after their own row is written, in that transaction. */
export async function updateAuthorOnProducts(
  tx: Tx,
  author: { id: string; name: string; verified: boolean },
): Promise<void> {
  const end = renderAuthor({ authorId: author.id, authorName: author.name, authorVerified: author.verified });
  await replaceAuthorInCards(tx, author.id, { begins: AUTHOR_PREFIX, end });
  await updateListedAuthorName(tx, author);
  await notifyListsChanged(tx);
}

/**
 * An author was banned or let in again: what they offer leaves the lists or comes back, and stays in its state. To be called after
 * their own row is written, in that transaction; what is just being published is waited for.
 */
export async function relistProductsOfAuthor(tx: Tx, authorId: string): Promise<void> {
  for (const product of await lockProductsOf(tx, authorId)) {
    if (product.status === "published") await updateListing(tx, product);
  }
}
