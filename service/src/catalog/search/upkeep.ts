import type { Context } from "../../core/context.ts";
import { countListings, foldCounts, weighWords } from "./queries.ts";

/** So many listings tell how common a word is. */
const SAMPLED = 5_000;

/** Fewer rows are not worth the rewriting. */
const FOLD_FROM = 1_000;

/** Changes add rows to what facets and totals are added up from: this keeps them few. */
export const foldFacetCounts = (ctx: Context, from = FOLD_FROM) => foldCounts(ctx.db, from);

/** Which of two words was meant is told by how common they are. */
export async function weighSearchWords(ctx: Context): Promise<void> {
  const listings = await countListings(ctx.db);
  if (listings > 0) await weighWords(ctx.db, Math.min(100, (SAMPLED / listings) * 100));
}
