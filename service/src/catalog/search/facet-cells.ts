import type { Context } from "../../core/context.ts";
import { toMinor } from "../../core/money/amount.ts";
import { withSubcategories } from "./categories.ts";
import {
  currencyOf,
  type Filters,
  isInOneCurrency,
  type SortedFilters,
  usesPrice,
  Where,
} from "./filters.ts";

/** Bounds of price bands in minor units, as in stoa_price_band() of 0015_listings.sql. */
export const PRICE_EDGES = [500, 1_000, 2_000, 5_000, 10_000];
/** Bounds of rating bands, as in stoa_rating_band(). */
export const RATING_EDGES = [1, 2, 3, 4, 4.5];
/** Bounds of pass rate bands, as in stoa_pass_band() of 0053_product_scores.sql. */
export const PASS_EDGES = [0.5, 0.7, 0.85];

const bandStartingAt = (edges: number[], amount: number): number | undefined => {
  if (amount === 0) return 0;
  const at = edges.indexOf(amount);
  return at < 0 ? undefined : at + 1;
};

function addPriceBands(where: Where, { minPrice, maxPrice }: Filters, currency: string): boolean {
  const first = bandStartingAt(PRICE_EDGES, Number(toMinor(minPrice, currency) ?? -1));
  if (first === undefined) return false;
  where.add("c.price_band >= $", first);
  if (maxPrice === undefined) return true;
  const next = bandStartingAt(PRICE_EDGES, Number(toMinor(maxPrice, currency) ?? -2) + 1);
  if (!next) return false;
  where.add("c.price_band < $", next);
  return true;
}

/**
 * Conditions on `facet_counts c`, which counts published products by type, category, currency, price and rating band,
 * once in total and once per provider. null: other filters, or bounds within a band.
 */
export async function facetCellConditions(
  ctx: Context,
  query: SortedFilters,
  each: "product" | "provider" = "product",
): Promise<Where | null> {
  if (query.search || query.tag || query.lang || query.author || query.status) return null;
  if (query.testedOn !== undefined || query.minPassRate !== undefined) return null;
  const where = new Where();
  const currency = currencyOf(ctx, query);
  if (isInOneCurrency(query)) where.add("c.currency = $", currency);
  if (usesPrice(query) && !addPriceBands(where, query, currency)) return null;
  if (query.minRating) {
    const band = bandStartingAt(RATING_EDGES, query.minRating);
    if (band === undefined) return null;
    where.add("c.rating_band >= $", band);
  }
  if (query.type) where.add("c.type = $", query.type);
  if (query.category) where.add("c.category = any($)", await withSubcategories(ctx, query.category));
  if (query.provider) where.add("c.provider = $", query.provider);
  else where.add(each === "provider" ? "c.provider is not null" : "c.provider is null");
  return where;
}

export interface TotalQuery {
  text: string;
  values: unknown[];
}
const SUM = "select coalesce(sum(products), 0)::bigint as total";

/** The number of products without a search; null: no counts exist for these filters. */
export async function buildTotalQuery(
  ctx: Context,
  { tag, ...query }: SortedFilters,
): Promise<TotalQuery | null> {
  const cells = await facetCellConditions(ctx, query);
  if (!cells) return null;
  if (!tag) return { text: `${SUM} from facet_counts c ${cells.text}`, values: cells.values };
  const isAlone = cells.values.length === 0;
  return isAlone ? { text: `${SUM} from tag_counts where tag = $1`, values: [tag.toLowerCase()] } : null;
}
