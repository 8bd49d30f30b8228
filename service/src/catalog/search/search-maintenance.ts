import type { Context } from "../../core/context.ts";
import { compactCounts, countListings, writeWordFrequencies } from "./queries.ts";

/** So many listings tell how common a word is. */
const SAMPLE_SIZE = 5_000;

/** Fewer rows are not worth the rewriting. */
const COMPACT_FROM = 1_000;

/** Changes add rows to what facets and totals are added up from: this keeps them few. */
export const compactFacetCounts = (ctx: Context, from = COMPACT_FROM) => compactCounts(ctx.db, from);

/** Spelling correction prefers the more frequent word. */
export async function updateWordFrequencies(ctx: Context): Promise<void> {
  const listings = await countListings(ctx.db);
  if (listings > 0) await writeWordFrequencies(ctx.db, Math.min(100, (SAMPLE_SIZE / listings) * 100));
}
