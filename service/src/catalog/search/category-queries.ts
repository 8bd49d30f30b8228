import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

export const hasCategory = async (db: Queries, slug: string): Promise<boolean> =>
  (await db.selectFrom("categories").select("slug").where("slug", "=", slug).executeTakeFirst()) !==
  undefined;

export async function isTopLevel(db: Queries, slug: string): Promise<boolean> {
  const top = db.selectFrom("categories").select("slug").where("slug", "=", slug).where("parent", "is", null);
  return (await top.executeTakeFirst()) !== undefined;
}

export async function findCategories(db: Queries, slugs: string[]): Promise<string[]> {
  const { rows } = await sql<{ slug: string }>`
    select slug from categories where slug = any (${slugs}::text[])`.execute(db);
  return rows.map((row) => row.slug);
}

export async function findWithSubcategories(db: Queries, slug: string): Promise<string[]> {
  const rows = await db
    .selectFrom("categories")
    .select("slug")
    .where((row) => row.or([row("slug", "=", slug), row("parent", "=", slug)]))
    .execute();
  return rows.map((row) => row.slug);
}

/** Counts include subcategories. */
export async function listCategories(db: Queries, paging: Paging) {
  const { rows } = await sql<{ slug: string; name: string; parent: string | null; products: number }>`
    select c.slug, c.name, c.parent, coalesce(sum(f.products), 0)::bigint as products
      from categories c
      left join categories below on below.slug = c.slug or below.parent = c.slug
      left join facet_counts f on f.category = below.slug and f.provider is null
     group by c.slug order by coalesce(c.parent, c.slug), c.parent nulls first, c.slug
     limit ${paging.limit} offset ${offsetOf(paging)}`.execute(db);
  const { total } = await db
    .selectFrom("categories")
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return { items: rows, total } satisfies Page<unknown>;
}

export const insertCategories = (
  db: Queries,
  categories: { slug: string; name: string; parent: string | null }[],
) =>
  db
    .insertInto("categories")
    .values(categories)
    .onConflict((conflict) => conflict.column("slug").doNothing())
    .execute();
