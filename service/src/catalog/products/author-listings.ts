import { inBatches } from "../../core/batches.ts";
import type { Tx } from "../../platform/db/database.ts";
import { AUTHOR_PREFIX, type Author, renderAuthor, toAuthorFields } from "../search/card.ts";
import { notifyListsChanged, updateListedAuthorName, updateListings } from "../search/listing.ts";
import { lockProductsOf, replaceAuthorInCards } from "./queries.ts";

const LISTED_TOGETHER = 100;

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
  const products = await lockProductsOf(tx, authorId);
  const published = products.filter(({ status }) => status === "published");
  for (const some of inBatches(published, LISTED_TOGETHER)) await updateListings(tx, some);
}
