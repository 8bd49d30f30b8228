import { MAX_SIMILAR } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { offsetOf, type Paging } from "../../platform/db/paging.ts";
import { RawPage } from "../../platform/http/envelope.ts";
import { RawJson } from "../../platform/http/route.ts";
import { insertCounters } from "./card.ts";
import { listSimilarCards } from "./list-queries.ts";

/** Products on sale that are like this one, the most similar first. Cached, because they are the same for everybody. */
export function listSimilar(ctx: Context, productId: string, paging: Paging): Promise<RawPage> {
  const { page, limit } = paging;
  return ctx.listCache.get(`similar ${productId} ${page} ${limit}`, async () => {
    const rows = await listSimilarCards(ctx, productId, MAX_SIMILAR);
    const start = offsetOf(paging);
    const items = rows
      .slice(start, start + limit)
      .map((row) => new RawJson(insertCounters(row.card, row, ctx.links.origin())));
    return new RawPage({ items, total: rows.length });
  });
}
