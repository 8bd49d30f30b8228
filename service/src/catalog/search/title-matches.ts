import type { Context } from "../../core/context.ts";
import { ANONYMOUS_CALLER } from "./filters.ts";
import { buildMatches } from "./matches.ts";
import { parseSearch } from "./search-terms.ts";

/** Published products that share most words with a title. Costs what a search costs, whatever the number of products. */
export async function findByTitleWords(
  ctx: Context,
  { title, lang }: { title: string; lang: string | null },
  limit: number,
): Promise<string[]> {
  const terms = await parseSearch(ctx.db, title, lang ?? undefined);
  if (terms.length === 0) return [];
  const query = { minPrice: 0, minRating: 0 };
  const matches = await buildMatches(ctx, ANONYMOUS_CALLER, query, { terms, words: "any" });
  const text = `
    select m.product_id as id from (${matches.mostBought(limit)}) m
     order by ${matches.matchedWords ?? "1"} desc, ts_rank(m.search, ${matches.tsQuery}) desc limit ${limit}`;
  const { rows } = await ctx.pool.query<{ id: string }>({ text, values: matches.rankedValues });
  return rows.map(({ id }) => id);
}
