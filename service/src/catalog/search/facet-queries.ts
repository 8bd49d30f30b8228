import type { Facets } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import type { Where } from "./filters.ts";
import type { DocumentColumn, Matches } from "./matches.ts";
import { runStatement } from "./named-statements.ts";

export type Facet = Facets["estimated"][number];

export const MAX_TAGS = 20;
export const MAX_MODELS = 20;

/** The column of each facet. */
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

/** Facets whose column of a product is an array; each element counts. */
const ARRAY_FACETS: Facet[] = ["provider", "tag", "testedOn"];

/** Only the most frequent values of these facets are read. */
const MAX_VALUES: Partial<Record<Facet, number>> = { tag: MAX_TAGS, testedOn: MAX_MODELS };

/** Rows with these columns, each for `products` products. */
export interface CountSource {
  text: string;
  values: unknown[];
  /** Whether rows are documents or listings, which have arrays, and not cells. */
  hasArrays?: boolean;
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
export const TAG_SOURCE: CountSource = {
  text: "select tag, products from tag_counts",
  values: [],
};

/** Counts of models and pass rates without any filter. */
export const SCORE_SOURCE: CountSource = {
  text: "select model as tested_on, pass_band, products from score_counts",
  values: [],
};

/** Columns of the indexes by purchases, so that these facets read no row. Only listings_popularity has the category. */
const INDEXED_COLUMNS: Partial<Record<Facet, string[]>> = {
  type: ["type"],
  category: ["category"],
  provider: ["compatibility"],
  price: ["currency", "price_minor"],
  rating: ["rating_mean"],
};

/** The documents of a search with any price, as `documents` of the statement. It reads them only as far as its sources need. */
export type SharedDocuments = Pick<CountSource, "text" | "values">;

interface Sample {
  facets: Facet[];
  currency: string;
  limit: number;
}

/** The most bought listings. */
export function mostBoughtSource({ text, values }: Where, { limit, ...counted }: Sample): CountSource {
  const mostBought = (columns: string[]) =>
    `select ${columns.join(", ")} from listings l ${text} order by l.purchases desc, l.product_id desc limit ${limit}`;
  const columns = columnsOf(counted.facets, INDEXED_COLUMNS);
  const rows = columns ? mostBought(columns) : listingsOf(mostBought(["l.product_id"]));
  return listingSource(rows, { values, ...counted });
}

const DOCUMENT_COLUMNS: Record<Facet, DocumentColumn[]> = {
  type: ["type"],
  category: ["category"],
  provider: ["compatibility"],
  tag: ["tags"],
  price: ["currency", "price_minor"],
  rating: ["rating_band"],
  testedOn: ["tested_on"],
  passRate: ["pass_band"],
};
const documentColumns = (facets: Facet[]) => facets.flatMap((facet) => DOCUMENT_COLUMNS[facet]);

export function matchesSource(matches: Matches, { limit, ...counted }: Sample): CountSource {
  const documents = matches.any(limit, documentColumns(counted.facets));
  return documentSource(documents, {
    values: matches.values,
    isNamed: matches.hasFixedPlan,
    ...counted,
  });
}

/** With the columns of prices and of `facets`. */
export const documentsOf = (matches: Matches, facets: Facet[]): SharedDocuments => ({
  text: matches.inAnyOrder([...new Set([...DOCUMENT_COLUMNS.price, ...documentColumns(facets)])]),
  values: matches.values,
});

/** For the facet of prices, which counts all prices. */
export function anyPriceSource({ limit, ...counted }: Sample): CountSource {
  return documentSource(`select * from documents limit ${limit}`, { values: [], isNamed: true, ...counted });
}

/** The shared documents within conditions on prices. */
export function pricedSource({ text, values }: Where, { limit, ...counted }: Sample): CountSource {
  const documents = `select * from documents l ${text} limit ${limit}`;
  return documentSource(documents, { values, isNamed: true, ...counted });
}

/** undefined: a facet needs another column. */
function columnsOf<Column>(facets: Facet[], columns: Partial<Record<Facet, Column[]>>): Column[] | undefined {
  const each = facets.map((facet) => columns[facet]);
  return each.includes(undefined) ? undefined : each.flatMap((one) => one ?? []);
}

/** By an array of ids: PostgreSQL searches the index for it in order, in half the time of a join. */
const listingsOf = (ids: string) =>
  `select * from listings where product_id = any(array(select product_id from (${ids}) found))`;

type CountedRows = Omit<CountSource, "text" | "hasArrays"> & Omit<Sample, "limit">;

const listingSource = (listings: string, source: CountedRows): CountSource =>
  rowSource(listings, source, {
    rating: "stoa_rating_band(l.rating_mean) as rating_band",
    passRate: "stoa_pass_band(l.low) as pass_band",
  });

const documentSource = (documents: string, source: CountedRows): CountSource =>
  rowSource(documents, source, { rating: "l.rating_band", passRate: "l.pass_band" });

function rowSource(
  rows: string,
  { facets, currency, ...source }: CountedRows,
  bands: Record<"rating" | "passRate", string>,
): CountSource {
  const columns: Record<Facet, string> = {
    type: "l.type",
    category: "l.category",
    provider: "l.compatibility as provider",
    tag: "l.tags as tag",
    price: bandIn(currency, "stoa_price_band(l.price_minor)"),
    testedOn: "l.tested_on",
    ...bands,
  };
  const counted = [...facets.map((facet) => columns[facet]), "1 as products"];
  return { text: `select ${counted.join(", ")} from (${rows}) l`, hasArrays: true, ...source };
}

export interface FacetCount {
  facet: Facet;
  value: string;
  count: number;
}

export interface CountedSource {
  counts: FacetCount[];
  all: number;
}

interface Row {
  source: number;
  facet: Facet | "all";
  value: string | null;
  count: number | null;
}

/** One statement for all sources: a round trip costs more than a count. PostgreSQL counts array elements, because reading all arrays costs more, too. */
export async function countFacets(
  ctx: Context,
  sources: (CountSource & { facets: Facet[] })[],
  documents: SharedDocuments | null,
): Promise<CountedSource[]> {
  const values: unknown[] = documents ? [...documents.values] : [];
  const shared = documents ? [`documents as materialized (${documents.text})`] : [];
  const parts = sources.map((source, at) => {
    const text = withValuesFrom(source.text, values.length);
    values.push(...source.values);
    return `source${at} as materialized (${text})`;
  });
  const text = `with ${[...shared, ...parts].join(", ")} ${sources.map(countsOf).join(" union all ")}`;
  const isNamed = sources.every((source) => source.isNamed === true);
  const rows = await runStatement<Row>(ctx, text, values, isNamed);
  return sources.map((_, at) => toCounted(rows.filter(({ source }) => source === at)));
}

/** Numbers the values of a part of a statement after those of the parts before. */
const withValuesFrom = (text: string, start: number) =>
  text.replace(/\$(\d+)/g, (_, number: string) => `$${Number(number) + start}`);

function countsOf({ facets, hasArrays }: CountSource & { facets: Facet[] }, at: number): string {
  const all = `select ${at} as source, 'all' as facet, null as value, sum(products)::bigint as count from source${at}`;
  const each = facets.map((facet) => {
    const column = COLUMNS[facet];
    const isArray = hasArrays && ARRAY_FACETS.includes(facet);
    const [from, value] = isArray
      ? [`(select unnest(${column}) as one, products from source${at}) each`, "one"]
      : [`source${at}`, column];
    const most = MAX_VALUES[facet];
    return `(
      select ${at}, '${facet}', ${value}::text as value, sum(products)::bigint as count
        from ${from} where ${value} is not null group by ${value}
      having sum(products) > 0 ${most === undefined ? "" : `order by count desc fetch first ${most} rows with ties`})`;
  });
  return [all, ...each].join(" union all ");
}

/** The row without a facet has the total. */
const toCounted = (rows: Row[]): CountedSource => ({
  counts: rows.flatMap(({ facet, value, count }) =>
    facet === "all" || value === null || count === null ? [] : [{ facet, value, count }],
  ),
  all: rows.find(({ facet }) => facet === "all")?.count ?? 0,
});
