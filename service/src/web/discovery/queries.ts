import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

/** The first product of each part, by id; the parts have `size` products on sale each. */
export async function listPartStarts(db: Queries, size: number): Promise<string[]> {
  const { rows } = await sql<{ productId: string }>`
    select product_id as "productId"
      from (select product_id, row_number() over (order by product_id) as position
              from listings where status = 'published') as numbered
     where position % ${size} = 1
     order by product_id`.execute(db);
  return rows.map(({ productId }) => productId);
}

export const listProductsFrom = (db: Queries, start: string, size: number) =>
  db
    .selectFrom("listings as l")
    .innerJoin("products as p", "p.id", "l.productId")
    .select(["l.productId", "p.title", "l.updatedAt"])
    .where("l.status", "=", "published")
    .where("l.productId", ">=", start)
    .orderBy("l.productId")
    .limit(size)
    .execute();
