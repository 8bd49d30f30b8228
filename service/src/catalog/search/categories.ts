import { readFile } from "node:fs/promises";
import type { Context } from "../../core/context.ts";
import type { Database } from "../../platform/db/database.ts";
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

/** Adds what the shipped tree has and the database lacks; an operator's own categories stay. */
export async function seedCategories(db: Database): Promise<void> {
  const tree = JSON.parse(await readFile(TREE, "utf8")) as Category[];
  await insertCategories(
    db,
    tree.toSorted((a, b) => Number(a.parent !== null) - Number(b.parent !== null)),
  );
}

/** The tree, parents before their children, with how many products each holds. */
export const listCategories = (ctx: Context, query: Paging): Promise<RawPage> =>
  ctx.listCache.get(
    `categories ${JSON.stringify(query)}`,
    async () => new RawPage(await listRows(ctx.db, query)),
  );

export const isCategory = (ctx: Context, slug: string): Promise<boolean> => hasCategory(ctx.db, slug);

/** Where listings have a slug of its level: a top-level category holds what is below it, too. */
export async function categoryColumn(ctx: Context, slug: string): Promise<"section" | "category"> {
  const isTop = await ctx.listCache.get(`top ${slug}`, () => isTopLevel(ctx.db, slug));
  return isTop ? "section" : "category";
}

/** Those of these slugs that are categories. */
export const filterKnownCategories = async (ctx: Context, slugs: string[]): Promise<Set<string>> =>
  new Set(await findCategories(ctx.db, slugs));

/** A category with those below it; of an unknown slug none. */
export const withSubcategories = (ctx: Context, slug: string): Promise<string[]> =>
  ctx.listCache.get(`below ${slug}`, () => findWithSubcategories(ctx.db, slug));
