import { MAX_SIMILAR } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import { RawJson } from "../../platform/http/route.ts";
import { insertCounters } from "./card.ts";
import { findLikeness, listSimilarCards } from "./list-queries.ts";

/** Products on sale that are like this one, the most similar first. Cached, because they are the same for everybody. */
export async function listSimilar(ctx: Context, productId: string, paging: Paging): Promise<Page<RawJson>> {
  const items = await ctx.listCache.get(`similar ${productId}`, () => findSimilar(ctx, productId));
  const start = offsetOf(paging);
  return {
    items: items.slice(start, start + paging.limit).map((card) => new RawJson(card)),
    total: items.length,
  };
}

async function findSimilar(ctx: Context, productId: string): Promise<string[]> {
  const likeness = await findLikeness(ctx, productId);
  if (!likeness) return [];
  const rows = await listSimilarCards(ctx, productId, likeness, MAX_SIMILAR);
  return rows.map((row) => insertCounters(row.card, row, ctx.links.origin()));
}
