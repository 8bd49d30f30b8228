import type { Tx } from "../../platform/db/database.ts";
import { AUTHOR_PREFIX, type Author, renderAuthor, toAuthorFields } from "../search/card.ts";
import { notifyListsChanged, updateListedAuthorName, updateListing } from "../search/listing.ts";
import { lockProductsOf, replaceAuthorInCards } from "./queries.ts";

/** Updates the author on products. Call it after writing the author's row, in that transaction. */
export async function updateAuthorOnProducts(tx: Tx, author: Author): Promise<void> {
  const end = renderAuthor(toAuthorFields(author));
  await replaceAuthorInCards(tx, author.id, { begins: AUTHOR_PREFIX, end });
  await updateListedAuthorName(tx, author);
  await notifyListsChanged(tx);
}

/**
 * Lists or unlists the products of a banned or unbanned author; their states stay. Call it after writing the author's
 * row, in that transaction. Waits for a concurrent publication.
 */
export async function relistProductsOfAuthor(tx: Tx, authorId: string): Promise<void> {
  for (const product of await lockProductsOf(tx, authorId)) {
    if (product.status === "published") await updateListing(tx, product);
  }
}
