import type { ProfileLink } from "@stoa/contract";
import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

interface SellerRow {
  id: string;
  handle: string | null;
  name: string;
  bio: string;
  avatar: string | null;
  links: ProfileLink[];
  verified: boolean;
  createdAt: Date;
}

/** Neither banned nor closed. An administrator or a former seller only with a product on sale, which names them. */
export const findSeller = (db: Queries, id: string) =>
  db
    .selectFrom("users as u")
    .select(["u.id", "u.handle", "u.name", "u.bio", "u.avatar", "u.links", "u.verified", "u.createdAt"])
    .where("u.id", "=", id)
    .where("u.bannedAt", "is", null)
    .where("u.closedAt", "is", null)
    .where((row) =>
      row.or([
        row("u.role", "=", "seller"),
        row.exists(
          row
            .selectFrom("listings as l")
            .select("l.productId")
            .whereRef("l.authorId", "=", "u.id")
            .where("l.status", "=", "published"),
        ),
      ]),
    )
    .$castTo<SellerRow>()
    .executeTakeFirst();

interface SellerCounters {
  products: number;
  purchases: number;
  ratingSum: number;
  ratingCount: number;
}

/** Of all products, whatever their state: sales and reviews remain. */
export async function sumCounters(db: Queries, authorId: string): Promise<SellerCounters> {
  const { rows } = await sql<SellerCounters>`
    select count(*) filter (where l.status = 'published') as products, sum_bigint(s.purchases) as purchases,
           sum_bigint(s.rating_sum) as "ratingSum", sum_bigint(s.rating_count) as "ratingCount"
      from listings l join product_stats s on s.product_id = l.product_id
     where l.author_id = ${authorId}`.execute(db);
  return firstOf(rows);
}
