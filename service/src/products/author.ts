import { AUTHOR_BEGINS, renderAuthor } from "../catalogue/card.ts";
import { tellLists } from "../catalogue/listing.ts";
import type { Tx } from "../db/database.ts";
import { replaceAuthor } from "./queries.ts";

/** An author changed what products show of them. To be called after their own row is written, in that transaction. */
export async function showAuthorAnew(
  tx: Tx,
  author: { id: string; name: string; verified: boolean },
): Promise<void> {
  const end = renderAuthor({ authorId: author.id, authorName: author.name, authorVerified: author.verified });
  await replaceAuthor(tx, author.id, { begins: AUTHOR_BEGINS, end });
  await tellLists(tx);
}
