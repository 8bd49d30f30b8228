import type { Facets } from "@stoa/contract";
import type { Caller, Context } from "../../core/context.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { cellsOf, PRICE_EDGES, RATING_EDGES } from "./cells.ts";
import { ALL_TAGS, allCells, type Count, countBy, eachOf, type Facet, type Source } from "./facet-queries.ts";
import { findFallback } from "./fallback.ts";
import { ANYBODY, currencyOf, type Filters, isOwnShelf, whereOf } from "./filters.ts";
import { matchesOf, type Search } from "./matches.ts";
import { toQuestion } from "./search.ts";

/** Where the cells cannot tell, so many of the most bought matches are counted. */
const SAMPLE = 1_000;
const MAX_TAGS = 20;
const FACETS: Facet[] = ["type", "category", "provider", "tag", "price", "rating"];

/** How many products of a list there are by what they can be filtered by, each facet without its own filter. */
export async function readFacets(ctx: Context, caller: Caller, query: Filters): Promise<Facets> {
  if (isOwnShelf(caller, query)) return countFacets(ctx, caller, query);
  return ctx.kept.get(`facets ${JSON.stringify(query)}`, () => countFacets(ctx, ANYBODY, query));
}

async function countFacets(ctx: Context, caller: Caller, query: Filters): Promise<Facets> {
  const groups = await groupsOf(ctx, query);
  const question = query.search ? await toQuestion(ctx.db, query.search, query.lang) : null;
  const countAll = (asked: Search | null) =>
    Promise.all(groups.map((group) => countGroup(ctx, caller, group, asked)));
  const found = await countAll(question && { question, words: "every" });
  const isEmpty = found.every(({ all }) => all === 0);
  const fallback =
    question && question.length > 0 && isEmpty ? await findFallback(ctx, caller, query, question) : null;
  const counted = fallback ? await countAll(fallback) : found;
  const counts = counted.flatMap((group) => group.counts);
  const currency = currencyOf(ctx, query);
  return {
    type: valuesOf(counts, "type"),
    category: valuesOf(counts, "category"),
    provider: valuesOf(counts, "provider"),
    tag: valuesOf(counts, "tag").slice(0, MAX_TAGS),
    price: priceBands(counts, currency),
    rating: ratingsFrom(counts),
    currency,
    estimated: groups.flatMap(({ wanted }, at) => (counted[at]!.isEstimate ? wanted : [])),
  };
}

/** Facets that share their filters. */
interface Group {
  query: Filters;
  wanted: Facet[];
}

/** Facets that ignore the same filters are counted together: each filtered one alone, all others at once. */
async function groupsOf(ctx: Context, query: Filters): Promise<Group[]> {
  const filtered = FACETS.filter((facet) => isFiltered(query, facet));
  const others = FACETS.filter((facet) => !filtered.includes(facet));
  // Cells know no tags, and count each provider by itself: apart from these the others are exact in one pass.
  const apart: Facet[] = (await cellsOf(ctx, query)) ? ["tag", "provider"] : [];
  return [
    ...filtered.map((facet) => ({ query: without(query, facet), wanted: [facet] })),
    ...others.filter((facet) => apart.includes(facet)).map((facet) => ({ query, wanted: [facet] })),
    { query, wanted: others.filter((facet) => !apart.includes(facet)) },
  ].filter(({ wanted }) => wanted.length > 0);
}

const OWN_FILTERS: Record<Facet, (keyof Filters)[]> = {
  type: ["type"],
  category: ["category"],
  provider: ["provider"],
  tag: ["tag"],
  price: ["minPrice", "maxPrice"],
  rating: ["minRating"],
};
const without = (query: Filters, facet: Facet): Filters => {
  const rest = { ...query };
  for (const field of OWN_FILTERS[facet]) delete rest[field];
  return { ...rest, minPrice: rest.minPrice ?? 0 };
};
const isFiltered = (query: Filters, facet: Facet) => OWN_FILTERS[facet].some((field) => query[field]);

interface Counted {
  counts: Count[];
  all: number;
  isEstimate: boolean;
}

async function countGroup(
  ctx: Context,
  caller: Caller,
  { query, wanted }: Group,
  asked: Search | null,
): Promise<Counted> {
  const exact = await exactSource(ctx, query, wanted);
  const { counts, all } = await countBy(ctx, exact ?? (await sampleOf(ctx, caller, query, asked)), wanted);
  return { counts, all, isEstimate: !exact && all > SAMPLE };
}

/** null: what is kept of all cannot tell. */
async function exactSource(ctx: Context, query: Filters, wanted: Facet[]): Promise<Source | null> {
  const cells = await cellsOf(ctx, query, wanted.includes("provider") ? "provider" : "product");
  if (cells && !wanted.includes("tag")) return allCells(cells, currencyOf(ctx, query));
  return cells?.values.length === 0 ? ALL_TAGS : null;
}

/** One more than the sample has: then there are more. */
async function sampleOf(ctx: Context, caller: Caller, query: Filters, asked: Search | null): Promise<Source> {
  const currency = currencyOf(ctx, query);
  if (!asked) {
    const { text, values } = await whereOf(ctx, caller, query);
    const mostBought = `order by l.purchases desc, l.product_id desc limit ${SAMPLE + 1}`;
    return eachOf(`select l.* from listings l ${text} ${mostBought}`, values, currency);
  }
  const matches = await matchesOf(ctx, caller, query, asked);
  const found = `(${matches.any(SAMPLE + 1)}) m join listings l on l.product_id = m.product_id`;
  return eachOf(`select l.* from ${found}`, matches.values, currency);
}

function valuesOf(counts: Count[], facet: Facet) {
  const sums = new Map<string, number>();
  for (const { value, count } of counts.filter((one) => one.facet === facet)) {
    sums.set(value, (sums.get(value) ?? 0) + count);
  }
  return [...sums]
    .map(([value, count]) => ({ value, count }))
    .filter(({ count }) => count > 0)
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
}

/** From one edge to just below the next: both ends can be given to the list as they are. */
function priceBands(counts: Count[], currency: string): Facets["price"] {
  return [0, ...PRICE_EDGES].map((from, band) => {
    const next = PRICE_EDGES[band];
    return {
      from: toDecimal(from, currency),
      to: next === undefined ? null : toDecimal(next - 1, currency),
      count: counts.find(({ facet, value }) => facet === "price" && value === String(band))?.count ?? 0,
    };
  });
}

const ratingsFrom = (counts: Count[]): Facets["rating"] =>
  RATING_EDGES.map((from, at) => {
    const bands = counts.filter(({ facet, value }) => facet === "rating" && Number(value) > at);
    return { from, count: bands.reduce((sum, band) => sum + band.count, 0) };
  }).toReversed();
