import type { Facets } from "@stoa/contract";
import type { Caller, Context } from "../../core/context.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { facetCellConditions, PASS_EDGES, PRICE_EDGES, RATING_EDGES } from "./facet-cells.ts";
import {
  anyPriceSource,
  type CountedSource,
  type CountSource,
  cellSource,
  countFacets,
  documentsOf,
  type Facet,
  type FacetCount,
  MAX_MODELS,
  MAX_TAGS,
  matchesSource,
  mostBoughtSource,
  pricedSource,
  SCORE_SOURCE,
  type SharedDocuments,
  TAG_SOURCE,
} from "./facet-queries.ts";
import {
  ANONYMOUS_CALLER,
  currencyOf,
  type Filters,
  isOwnProductList,
  listConditions,
  priceConditions,
  resolveAuthor,
} from "./filters.ts";
import { buildMatches, type SearchRequest } from "./matches.ts";
import { findFallback } from "./search-fallback.ts";
import { parseSearch } from "./search-terms.ts";

/** Without facet cells, this many of the most bought matches are counted. */
const SAMPLE = 1_000;
const FACETS: Facet[] = ["type", "category", "provider", "tag", "price", "rating", "testedOn", "passRate"];
const SCORE_FACETS: Facet[] = ["testedOn", "passRate"];

/** Counts the products of a list by each filter, without that facet's own filter. */
export async function readFacets(ctx: Context, caller: Caller, filters: Filters): Promise<Facets> {
  const query = await resolveAuthor(ctx, filters);
  if (isOwnProductList(caller, query)) return computeFacets(ctx, caller, query);
  return ctx.listCache.get(`facets ${JSON.stringify(query)}`, () =>
    computeFacets(ctx, ANONYMOUS_CALLER, query),
  );
}

async function computeFacets(ctx: Context, caller: Caller, query: Filters): Promise<Facets> {
  const groups = await groupFacets(ctx, query);
  const terms = query.search ? await parseSearch(ctx.db, query.search, query.lang) : null;
  const countAll = (request: SearchRequest | null) => countGroups(ctx, caller, { query, groups }, request);
  const found = await countAll(terms && { terms, words: "every" });
  const isEmpty = found.every(({ all }) => all === 0);
  const fallback =
    terms && terms.length > 0 && isEmpty ? await findFallback(ctx, caller, query, terms) : null;
  const counted = fallback ? await countAll(fallback) : found;
  const counts = counted.flatMap((group) => group.counts);
  const currency = currencyOf(ctx, query);
  return {
    type: facetValues(counts, "type"),
    category: facetValues(counts, "category"),
    provider: facetValues(counts, "provider"),
    tag: facetValues(counts, "tag").slice(0, MAX_TAGS),
    price: priceBands(counts, currency),
    rating: bandsFrom(counts, "rating", RATING_EDGES),
    testedOn: facetValues(counts, "testedOn").slice(0, MAX_MODELS),
    passRate: bandsFrom(counts, "passRate", PASS_EDGES),
    currency,
    estimated: groups.flatMap(({ facets }, at) => (counted[at]?.isEstimate ? facets : [])),
  };
}

interface FacetGroup {
  query: Filters;
  facets: Facet[];
}

/** A filtered facet needs its own pass; all others share one. */
async function groupFacets(ctx: Context, query: Filters): Promise<FacetGroup[]> {
  const filtered = FACETS.filter((facet) => isFiltered(query, facet));
  const others = FACETS.filter((facet) => !filtered.includes(facet));
  // Cells have no tags, and count providers separately. Without these two, the others are exact in one pass.
  const apart: Facet[] = (await facetCellConditions(ctx, query)) ? ["tag", "provider"] : [];
  const scores = query.search ? [] : others.filter((facet) => SCORE_FACETS.includes(facet));
  return [
    ...filtered.map((facet) => ({ query: withoutFacet(query, facet), facets: [facet] })),
    ...others.filter((facet) => apart.includes(facet)).map((facet) => ({ query, facets: [facet] })),
    { query, facets: scores },
    { query, facets: others.filter((facet) => !apart.includes(facet) && !scores.includes(facet)) },
  ].filter(({ facets }) => facets.length > 0);
}

const OWN_FILTERS: Record<Facet, (keyof Filters)[]> = {
  type: ["type"],
  category: ["category"],
  provider: ["provider"],
  tag: ["tag"],
  price: ["minPrice", "maxPrice"],
  rating: ["minRating"],
  testedOn: ["testedOn"],
  passRate: ["minPassRate"],
};
const withoutFacet = (query: Filters, facet: Facet): Filters => {
  const rest = { ...query };
  for (const field of OWN_FILTERS[facet]) delete rest[field];
  return { ...rest, minPrice: rest.minPrice ?? 0 };
};
/** A highest price of 0 asks for free products, a lowest one of 0 for all. */
const isFiltered = (query: Filters, facet: Facet) =>
  OWN_FILTERS[facet].some((field) => query[field] || (field === "maxPrice" && query.maxPrice === 0));

interface Counted extends CountedSource {
  isEstimate: boolean;
}

async function countGroups(
  ctx: Context,
  caller: Caller,
  { query, groups }: { query: Filters; groups: FacetGroup[] },
  request: SearchRequest | null,
): Promise<Counted[]> {
  const shared = request && (await shareDocuments(ctx, caller, { query, groups }, request));
  const sources = await Promise.all(
    groups.map(async (group) => {
      const exact = await exactSource(ctx, group.query, group.facets);
      const source = exact ?? shared?.sourceOf(group) ?? (await sampleSource(ctx, caller, group, request));
      return { ...source, facets: group.facets, isExact: exact !== null };
    }),
  );
  const counted = await countFacets(ctx, sources, shared?.documents ?? null);
  return counted.map((one, at) => ({ ...one, isEstimate: !sources[at]?.isExact && one.all > SAMPLE }));
}

interface SharedSources {
  documents: SharedDocuments;
  /** null: the group reads its own matches. */
  sourceOf(group: FacetGroup): CountSource | null;
}

/**
 * A search with a filter by price reads its documents once:
 * - The facet of prices counts all of them.
 * - Facets without a filter count those within the prices.
 * - Other filtered facets read their own matches, since they omit their filter.
 *
 * null: the search has no such filter, or also reads listings.
 */
async function shareDocuments(
  ctx: Context,
  caller: Caller,
  { query, groups }: { query: Filters; groups: FacetGroup[] },
  request: SearchRequest,
): Promise<SharedSources | null> {
  const ofPrice = groups.find((group) => group.facets.includes("price") && group.query !== query);
  const matches = ofPrice && (await buildMatches(ctx, caller, ofPrice.query, request));
  if (!matches?.hasFixedPlan) return null;
  return {
    documents: documentsOf(
      matches,
      groups.filter((group) => group.query === query).flatMap((group) => group.facets),
    ),
    sourceOf(group: FacetGroup): CountSource | null {
      if (group === ofPrice) return anyPriceSource(sampleOf(ctx, group));
      return group.query === query ? pricedSource(priceConditions(ctx, query), sampleOf(ctx, group)) : null;
    },
  };
}

/** null: no exact counts exist for these filters. */
async function exactSource(ctx: Context, query: Filters, facets: Facet[]): Promise<CountSource | null> {
  const cells = await facetCellConditions(ctx, query, facets.includes("provider") ? "provider" : "product");
  const isUnfiltered = cells?.values.length === 0;
  if (facets.some((facet) => SCORE_FACETS.includes(facet))) return isUnfiltered ? SCORE_SOURCE : null;
  if (cells && !facets.includes("tag")) return cellSource(cells, currencyOf(ctx, query));
  return isUnfiltered ? TAG_SOURCE : null;
}

const sampleOf = (ctx: Context, { query, facets }: FacetGroup) => ({
  facets,
  currency: currencyOf(ctx, query),
  // To detect a larger result.
  limit: SAMPLE + 1,
});

async function sampleSource(
  ctx: Context,
  caller: Caller,
  group: FacetGroup,
  request: SearchRequest | null,
): Promise<CountSource> {
  const { query, facets } = group;
  const sample = sampleOf(ctx, group);
  if (request) return matchesSource(await buildMatches(ctx, caller, query, request), sample);
  const where = await listConditions(ctx, caller, query);
  // Few products are measured: of all others, the sample would miss them.
  if (facets.every((facet) => SCORE_FACETS.includes(facet))) where.add("l.low is not null");
  return mostBoughtSource(where, sample);
}

const facetValues = (counts: FacetCount[], facet: Facet) =>
  counts
    .filter((one) => one.facet === facet)
    .map(({ value, count }) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));

/** From one bound to just below the next: usable as minPrice and maxPrice. */
function priceBands(counts: FacetCount[], currency: string): Facets["price"] {
  return [0, ...PRICE_EDGES].map((from, band) => {
    const next = PRICE_EDGES[band];
    return {
      from: toDecimal(from, currency),
      to: next === undefined ? null : toDecimal(next - 1, currency),
      count: counts.find(({ facet, value }) => facet === "price" && value === String(band))?.count ?? 0,
    };
  });
}

/** From each bound up, the highest first. */
const bandsFrom = (counts: FacetCount[], facet: "rating" | "passRate", edges: number[]) =>
  edges
    .map((from, at) => {
      const bands = counts.filter((one) => one.facet === facet && Number(one.value) > at);
      return { from, count: bands.reduce((sum, band) => sum + band.count, 0) };
    })
    .toReversed();
