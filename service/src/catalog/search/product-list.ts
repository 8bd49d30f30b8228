import type { Caller, Context } from "../../core/context.ts";
import { offsetOf, type Page } from "../../platform/db/paging.ts";
import { RawPage } from "../../platform/http/envelope.ts";
import { RawJson } from "../../platform/http/route.ts";
import { insertCounters } from "./card.ts";
import { buildTotalQuery } from "./facet-cells.ts";
import {
  ANONYMOUS_CALLER,
  isOwnProductList,
  type ListQuery,
  listConditions,
  resolveAuthor,
  type Where,
} from "./filters.ts";
import {
  type CardRow,
  countBounded,
  countMatches,
  listCountedRankedPage,
  listCountedSortedPage,
  listRankedPage,
  listSortedPage,
  runTotalQuery,
  type Total,
} from "./list-queries.ts";
import { buildMatches, type Matches, type SearchRequest } from "./matches.ts";
import { findFallback } from "./search-fallback.ts";
import { mayMatch, parseSearch } from "./search-terms.ts";

/** A search lists this many products; its total is exact up to here. */
const MAX_FOUND = 1_000;
/** From here on, reading the total first pays off. */
const DEEP_OFFSET = 2_000;

type Found = Total & { rows: CardRow[] };

/**
 * Published products within the filters, or with `author=me` the caller's own in every state. Public lists are queried
 * as an anonymous caller and cached.
 */
export async function listProducts(ctx: Context, caller: Caller, filters: ListQuery) {
  const query = await resolveAuthor(ctx, filters);
  if (isOwnProductList(caller, query)) return findProducts(ctx, caller, query);
  const find = async () => new RawPage(await findProducts(ctx, ANONYMOUS_CALLER, query));
  return ctx.listCache.get(`products ${JSON.stringify(query)}`, find);
}

async function findProducts(ctx: Context, caller: Caller, query: ListQuery): Promise<Page<RawJson>> {
  const terms = query.search ? await parseSearch(ctx.db, query.search, query.lang) : null;
  const found =
    terms && !mayMatch(terms)
      ? { items: [], total: 0 }
      : await find(ctx, caller, query, terms && { terms, words: "every" });
  if (!terms || terms.length === 0 || found.total > 0) return found;
  const fallback = await findFallback(ctx, caller, query, terms);
  if (!fallback) return found;
  const { correctedSearch } = fallback;
  return { ...(await find(ctx, caller, query, fallback)), ...(correctedSearch && { correctedSearch }) };
}

async function find(ctx: Context, caller: Caller, query: ListQuery, request: SearchRequest | null) {
  const { rows, ...counted } = request
    ? await search(ctx, await buildMatches(ctx, caller, query, request), query)
    : await browse(ctx, await listConditions(ctx, caller, query), query);
  return {
    items: rows.map((row) => new RawJson(insertCounters(row.card, row, ctx.links.origin()))),
    ...counted,
    // Counted in a separate query: a product may have been added in between.
    total: Math.max(counted.total, rows.length > 0 ? offsetOf(query) + rows.length : 0),
  } satisfies Page<RawJson>;
}

/** The number of rows on the page before the end of the list. */
const pageLength = (query: ListQuery, end: number) =>
  Math.max(0, Math.min(query.limit, end - offsetOf(query)));

async function search(ctx: Context, matches: Matches, query: ListQuery): Promise<Found> {
  const limit = pageLength(query, MAX_FOUND);
  if (limit === 0) return { rows: [], ...(await countMatches(ctx, matches, MAX_FOUND)) };
  const page = { limit, bound: MAX_FOUND };
  if (query.sort === "relevance" && matches.matchedWords !== null) {
    // The number of words is computed for each match that is read, so that as few as possible are.
    const counting = countMatches(ctx, matches, MAX_FOUND);
    const [counted, rows] = await Promise.all([counting, listRankedPage(ctx, matches, query, limit)]);
    return { rows, ...counted };
  }
  if (query.sort === "relevance") return listCountedRankedPage(ctx, matches, query, page);
  const { rows, ...counted } = await listCountedSortedPage(ctx, matches, query, page);
  if (rows) return { rows, ...counted };
  // Reading many matches in order meets enough of them soon.
  const all = { from: matches.all, where: "", values: matches.values };
  return { rows: await listSortedPage(ctx, all, query, { limit }), ...counted };
}

async function browse(ctx: Context, where: Where, query: ListQuery): Promise<Found> {
  const sum = await buildTotalQuery(ctx, query);
  const listings = { from: "listings l", where: where.text, values: where.values };
  if (sum && offsetOf(query) > DEEP_OFFSET) {
    const { total } = await runTotalQuery(ctx, sum);
    const limit = pageLength(query, total);
    return { rows: await listSortedPage(ctx, listings, query, { limit, total }), total };
  }
  const [rows, counted] = await Promise.all([
    listSortedPage(ctx, listings, query, { limit: query.limit }),
    sum ? runTotalQuery(ctx, sum) : countBounded(ctx, listings),
  ]);
  return { rows, ...counted };
}
