import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { countRows, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { CardRow } from "../search/list-queries.ts";

/** When the product was added; null: the list is full. Two additions at once count together. */
export async function addEntry(
  tx: Tx,
  entry: { userId: string; productId: string; addedAt: Date },
  max: number,
): Promise<Date | null> {
  await sql`select from users where id = ${entry.userId} for no key update`.execute(tx);
  const { rows } = await sql<{ addedAt: Date | null; isFull: boolean }>`
    select max(w.added_at) filter (where w.product_id = ${entry.productId}) as "addedAt",
           count(*) filter (where l.status = 'published') >= ${max} as "isFull"
      from wishlist_entries w join listings l on l.product_id = w.product_id
     where w.user_id = ${entry.userId}`.execute(tx);
  const { addedAt, isFull } = firstOf(rows);
  if (addedAt || isFull) return addedAt;
  await tx.insertInto("wishlistEntries").values(entry).execute();
  return entry.addedAt;
}

/** Returns whether it was on the list. */
export async function removeEntry(db: Queries, userId: string, productId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("wishlistEntries")
    .where("userId", "=", userId)
    .where("productId", "=", productId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

export const deleteEntries = (tx: Tx, userId: string) =>
  tx.deleteFrom("wishlistEntries").where("userId", "=", userId).execute();

export type EntryRow = CardRow & { addedAt: Date };

export async function listEntries(
  db: Queries,
  userId: string,
  { productId, ...paging }: Paging & { productId: string | undefined },
): Promise<Page<EntryRow>> {
  const onSale = () =>
    db
      .selectFrom("wishlistEntries as w")
      .innerJoin("listings as l", "l.productId", "w.productId")
      .where("w.userId", "=", userId)
      .where("l.status", "=", "published")
      .$if(productId !== undefined, (query) => query.where("w.productId", "=", String(productId)));
  const items = await onSale()
    .innerJoin("products as p", "p.id", "w.productId")
    .innerJoin("productStats as s", "s.productId", "w.productId")
    .leftJoin("productScores as m", (join) =>
      join.onRef("m.productId", "=", "w.productId").on("m.name", "=", ""),
    )
    .select(["w.addedAt", "p.card", "s.views", "s.purchases", "s.ratingSum", "s.ratingCount"])
    .select(sql<string | null>`m.score::text`.as("score"))
    .orderBy("w.addedAt", "desc")
    .orderBy("w.productId", "desc")
    .limit(paging.limit)
    .offset(offsetOf(paging))
    .$castTo<EntryRow>()
    .execute();
  return { items, ...(await countRows(db, onSale().select("w.productId"))) };
}
