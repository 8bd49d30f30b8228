import type { Facets } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import type { Where } from "./filters.ts";
import type { DocumentColumn } from "./matches.ts";
import { runStatement } from "./named-statements.ts";

export type Facet = Facets["estimated"][number];

/** The column of each facet; array elements count separately. */
const COLUMNS: Record<Facet, string> = {
  type: "type",
  category: "category",
  provider: "provider",
  tag: "tag",
  price: "price_band",
  rating: "rating_band",
  testedOn: "tested_on",
  passRate: "pass_band",
};

/** Rows with these columns, each for `products` products. */
export interface CountSource {
  text: string;
  values: unknown[];
  /** Whether one plan fits all values. */
  isNamed?: boolean;
}

/** The price band in a currency. isCurrency() has validated it, so it cannot be SQL. */
const bandIn = (currency: string, band: string) =>
  `case when currency = '${currency}' then ${band} end as price_band`;

export const cellSource = (where: Where, currency: string): CountSource => ({
  text: `
    select type, category, provider, ${bandIn(currency, "price_band")}, rating_band, products
      from facet_counts c ${where.text}`,
  values: where.values,
});

/** Counts of tags without any filter. */
export const TAG_SOURCE: CountSource = { text: "select tag, products from tag_counts", values: [] };

/** Counts of models and pass rates without any filter. */
export const SCORE_SOURCE: CountSource = {
  text: "select model as tested_on, pass_band, products from score_counts",
  values: [],
};

/** `listings` is SQL, with the columns of these facets: of listings, or of search documents where these have them. */
export function listingSource(
  listings: string,
  { values, isOfDocumentsAlone = false }: { values: unknown[]; isOfDocumentsAlone?: boolean },
  { facets, currency }: { facets: Facet[]; currency: string },
): CountSource {
  const columns: Record<Facet, string> = {
    type: "l.type",
    category: "l.category",
    provider: "l.compatibility as provider",
    tag: "l.tags as tag",
    price: bandIn(currency, "stoa_price_band(l.price_minor)"),
    rating: "stoa_rating_band(l.rating_mean) as rating_band",
    testedOn: "l.tested_on",
    passRate: "stoa_pass_band(l.low) as pass_band",
  };
  const counted = [...facets.map((facet) => columns[facet]), "1 as products"];
  return {
    text: `select ${counted.join(", ")} from (${listings}) l`,
    values,
    isNamed: isOfDocumentsAlone,
  };
}

/** The columns of search documents by which a facet counts; undefined: documents lack it. */
export const DOCUMENT_COLUMNS: Partial<Record<Facet, DocumentColumn[]>> = {
  type: ["type"],
  category: ["category"],
  provider: ["compatibility"],
  price: ["currency", "price_minor"],
};

export interface FacetCount {
  facet: Facet;
  value: string;
  count: number;
}

type Row = { facet: Facet | "all"; count: number | null } & Record<string, unknown>;

/** One pass counts all facets. The row without a facet has the total. */
export async function countFacets(
  ctx: Context,
  { text, values, isNamed }: CountSource,
  facets: Facet[],
): Promise<{ counts: FacetCount[]; all: number }> {
  const columns = facets.map((facet) => COLUMNS[facet]);
  const facet = facets.map((name) => `when grouping(${COLUMNS[name]}) = 0 then '${name}'`).join(" ");
  const rows = await runStatement<Row>(
    ctx,
    `select case ${facet} else 'all' end as facet, ${columns.join(", ")}, sum(products)::bigint as count
      from (${text}) source group by grouping sets ((), ${columns.map((column) => `(${column})`).join(", ")})`,
    values,
    isNamed,
  );
  return { counts: toFacetCounts(rows), all: rows.find(({ facet }) => facet === "all")?.count ?? 0 };
}

/** Splits arrays and omits zero counts. */
const toFacetCounts = (rows: Row[]): FacetCount[] =>
  rows.flatMap(({ facet, count, ...columns }) => {
    if (facet === "all" || !count) return [];
    const value = columns[COLUMNS[facet]];
    const members = value === null ? [] : Array.isArray(value) ? value : [String(value)];
    return members.map((member: string) => ({ facet, value: member, count }));
  });
