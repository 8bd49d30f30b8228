import type { Variable } from "@stoa/contract";
import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

export interface RunnableProduct {
  id: string;
  type: "PROMPT" | "WORKFLOW";
  /** These three of the version that would run. */
  title: string;
  description: string;
  variables: Variable[];
  authorName: string;
  /** Of a workflow: its definition. */
  definition: string | null;
}

export interface RunnableFilter {
  types: RunnableProduct["type"][];
  /** The last one before it; null: from the beginning. */
  after: string | null;
  limit: number;
}

/** Part of what somebody may run, newest first, each with the version of their line. */
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

/** The product whose id ends so, of those that somebody wrote or ever bought. Whether they may run it is another question. */
export async function findProductByIdSuffix(
  db: Queries,
  userId: string,
  end: string,
): Promise<string | undefined> {
  const { rows } = await sql<{ id: string }>`
    select id from products where author_id = ${userId} and right(id::text, 12) = ${end}
    union
    select product_id from entitlements where buyer_id = ${userId} and right(product_id::text, 12) = ${end}
    limit 1`.execute(db);
  return rows[0]?.id;
}
