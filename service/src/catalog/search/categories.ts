import { readFile } from "node:fs/promises";
import type { Context } from "../../core/context.ts";
import type { Database, Queries } from "../../platform/db/database.ts";
import type { Paging } from "../../platform/db/paging.ts";
import { RawPage } from "../../platform/http/envelope.ts";
import {
  findCategories,
  findWithSubcategories,
  hasCategory,
  insertCategories,
  isTopLevel,
  listCategories as listRows,
} from "./category-queries.ts";

export interface Category {
  slug: string;
  name: string;
  parent: string | null;
}

const TREE = new URL("./categories.json", import.meta.url);

/** Adds missing categories of the shipped tree. An operator's own categories stay. */
export async function seedCategories(db: Database): Promise<void> {
  const tree = JSON.parse(await readFile(TREE, "utf8")) as Category[];
  await insertCategories(
    db,
    tree.toSorted((a, b) => Number(a.parent !== null) - Number(b.parent !== null)),
  );
}

/** Parents before their children, with product counts. */
export const listCategories = (ctx: Context, query: Paging): Promise<RawPage> =>
  ctx.listCache.get(
    `categories ${JSON.stringify(query)}`,
    async () => new RawPage(await listRows(ctx.db, query)),
  );

export const isCategory = (db: Queries, slug: string): Promise<boolean> => hasCategory(db, slug);

/** The column of a slug's level: a top-level category includes its subcategories. */
export async function categoryColumn(ctx: Context, slug: string): Promise<"section" | "category"> {
  const isTop = await ctx.listCache.get(`top ${slug}`, () => isTopLevel(ctx.db, slug));
  return isTop ? "section" : "category";
}

export const filterKnownCategories = async (ctx: Context, slugs: string[]): Promise<Set<string>> =>
  new Set(await findCategories(ctx.db, slugs));

/** Empty for an unknown slug. */
export const withSubcategories = (ctx: Context, slug: string): Promise<string[]> =>
  ctx.listCache.get(`below ${slug}`, () => findWithSubcategories(ctx.db, slug));
