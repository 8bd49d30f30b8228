import type { Facets } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import type { Where } from "./filters.ts";

export type Facet = Facets["estimated"][number];

/** The column that a facet counts by; of arrays each member counts. */
const COLUMNS: Record<Facet, string> = {
  type: "type",
  category: "category",
  provider: "provider",
  tag: "tag",
  price: "price_band",
  rating: "rating_band",
};

/** What is counted: rows with these columns, each for so many `products`. */
export interface CountSource {
  text: string;
  values: unknown[];
}

/** The band of a price in the currency that is asked for; isCurrency() knows it, so that it is nothing that could be SQL. */
const bandIn = (currency: string, band: string) =>
  `case when currency = '${currency}' then ${band} end as price_band`;

export const cellSource = (where: Where, currency: string): CountSource => ({
  text: `
    select type, category, provider, ${bandIn(currency, "price_band")}, rating_band, products
      from facet_counts c ${where.text}`,
  values: where.values,
});

/** Every tag by itself, where nothing is filtered. */
export const TAG_SOURCE: CountSource = { text: "select tag, products from tag_counts", values: [] };

/** `listings` is SQL. */
export const listingSource = (listings: string, values: unknown[], currency: string): CountSource => ({
  text: `
    select l.type, l.category, l.compatibility as provider, l.tags as tag, ${bandIn(currency, "stoa_price_band(l.price_minor)")},
           stoa_rating_band(l.rating_mean) as rating_band, 1 as products
      from (${listings}) l`,
  values,
});

export interface FacetCount {
  facet: Facet;
  value: string;
  count: number;
}

type Row = { facet: Facet | "all"; count: number | null } & Record<string, unknown>;

/** One pass over the source counts for every facet; the row without a facet has the sum of all. */
export async function countFacets(
  ctx: Context,
  { text, values }: CountSource,
  wanted: Facet[],
): Promise<{ counts: FacetCount[]; all: number }> {
  const columns = wanted.map((facet) => COLUMNS[facet]);
  const facet = wanted.map((one) => `when grouping(${COLUMNS[one]}) = 0 then '${one}'`).join(" ");
  const { rows } = await ctx.pool.query<Row>({
    text: `select case ${facet} else 'all' end as facet, ${columns.join(", ")}, sum(products)::bigint as count
      from (${text}) source group by grouping sets ((), ${columns.map((column) => `(${column})`).join(", ")})`,
    values,
  });
  return { counts: toFacetCounts(rows), all: rows.find(({ facet }) => facet === "all")?.count ?? 0 };
}

/** Members of arrays by themselves, and nothing that counts nothing. */
const toFacetCounts = (rows: Row[]): FacetCount[] =>
  rows.flatMap(({ facet, count, ...columns }) => {
    if (facet === "all" || !count) return [];
    const value = columns[COLUMNS[facet]];
    const members = value === null ? [] : Array.isArray(value) ? value : [String(value)];
    return members.map((member: string) => ({ facet, value: member, count }));
  });
