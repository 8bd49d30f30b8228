import type { Context } from "../../core/context.ts";
import { compactCounts, countListings, writeWordFrequencies } from "./queries.ts";

const SAMPLE_SIZE = 5_000;

/** Compacting fewer rows does not pay off. */
const COMPACT_FROM = 1_000;

/** Each change adds rows of differences; compaction keeps the sums cheap. */
export const compactFacetCounts = (ctx: Context, from = COMPACT_FROM) => compactCounts(ctx.db, from);

/** Spelling correction prefers the more frequent word. */
export async function updateWordFrequencies(ctx: Context): Promise<void> {
  const listings = await countListings(ctx.db);
  if (listings > 0) await writeWordFrequencies(ctx.db, Math.min(100, (SAMPLE_SIZE / listings) * 100));
}
