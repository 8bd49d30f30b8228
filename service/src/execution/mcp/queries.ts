import type { Variable } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

export interface RunnableProduct {
  id: string;
  type: "PROMPT" | "WORKFLOW";
  /** Title, description and variables are those of the version that would run. */
  title: string;
  description: string;
  variables: Variable[];
  authorName: string;
  /** The definition of a workflow; null for a prompt. */
  definition: string | null;
}

export interface RunnableFilter {
  types: RunnableProduct["type"][];
  /** The last product of the previous page; null: the first page. */
  after: string | null;
  limit: number;
}

/** A page of the products that a user may run, newest first, each in the version that would run. */
export async function listRunnableProducts(
  db: Queries,
  userId: string,
  { types, after, limit }: RunnableFilter,
) {
  const { rows } = await sql<RunnableProduct>`
    select p.id, p.type, v.title, v.description, u.name as "authorName", v.variables,
           case p.type when 'WORKFLOW' then v.content end as definition
      from runnable_products mine
      join products p on p.id = mine.product_id
      join users u on u.id = p.author_id
      join lateral (
        select * from product_versions v
         where v.product_id = p.id
           and (mine.major is null or v.numbers[1] = mine.major and v.numbers <= p.released)
         order by v.numbers desc limit 1) v on true
     where mine.user_id = ${userId} and p.type = any (${types}::text[])
       and (${after}::uuid is null or p.id < ${after})
     order by p.id desc limit ${limit}`.execute(db);
  return rows;
}

/** Finds a product that the user wrote or ever bought by the suffix of its id. The caller checks the right to run it. */
export async function findProductByIdSuffix(
  db: Queries,
  userId: string,
  suffix: string,
): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select id from products where author_id = ${userId} and right(id::text, 12) = ${suffix}
    union
    select product_id from entitlements where buyer_id = ${userId} and right(product_id::text, 12) = ${suffix}
    limit 1`.execute(db);
  return rows[0]?.id;
}

/** Whether the user has a product of their own, also a draft. */
export async function hasProducts(db: Queries, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom("products")
    .select("id")
    .where("authorId", "=", userId)
    .where("status", "<>", "deleted")
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}
