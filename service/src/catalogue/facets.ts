import type { Facets } from "@stoa/contract";
import type { Caller, Context } from "../context.ts";
import { toDecimal } from "../money/amount.ts";
import { cellsOf, PRICE_EDGES, RATING_EDGES } from "./cells.ts";
import { ANYBODY, currencyOf, type Filters, isOwnShelf, type Where, whereOf } from "./filters.ts";
import { type Matches, matchesOf } from "./matches.ts";
import { guess, toQuestion } from "./search.ts";

/** Where the cells cannot tell, so many of the most bought matches are counted. */
const SAMPLE = 1_000;
const MAX_TAGS = 20;

type Facet = Facets["estimated"][number];
const facets: Facet[] = ["type", "category", "provider", "tag", "price", "rating"];

/** The column that a facet counts by; of arrays each member counts. */
const COLUMNS: Record<Facet, string> = {
  type: "type",
  category: "category",
  provider: "compatibility",
  tag: "tags",
  price: "price_band",
  rating: "rating_band",
};

/** The band of a price in the currency that is asked for; isCurrency() knows it, so that it is nothing that could be SQL. */
const bandIn = (currency: string, band: string) =>
  `case when currency = '${currency}' then ${band} end as price_band`;

const SOURCES = {
  cells: (where: Where, currency: string) => `
    select type, category, compatibility, ${bandIn(currency, "price_band")}, rating_band, products
      from facet_counts c ${where.text}`,
  /** Every tag by itself, where nothing is filtered. */
  tags: () => "select array[tag] as tags, products from tag_counts",
  sample: (listings: string, currency: string) => `
    select l.type, l.category, l.compatibility, l.tags, ${bandIn(currency, "stoa_price_band(l.price_minor)")},
           stoa_rating_band(l.rating_mean) as rating_band, 1 as products
      from (${listings}) l`,
};

/** One pass over the source counts for every facet; the row without a facet has the sum of all. */
const counting = (source: string, wanted: Facet[]): string => {
  const columns = wanted.map((facet) => COLUMNS[facet]);
  const facet = wanted.map((one) => `when grouping(${COLUMNS[one]}) = 0 then '${one}'`).join(" ");
  return `select case ${facet} else 'all' end as facet, ${columns.join(", ")}, sum(products)::bigint as count
    from (${source}) source group by grouping sets ((), ${columns.map((column) => `(${column})`).join(", ")})`;
};

interface Count {
  facet: Facet;
  value: string;
  count: number;
}
interface Counted {
  counts: Count[];
  isEstimate: boolean;
}
interface Source {
  source: string;
  values: unknown[];
  isSample: boolean;
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

type Row = { facet: Facet | "all"; count: number | null } & Record<string, unknown>;

/** Members of arrays by themselves, and nothing that counts nothing. */
const countsOf = (rows: Row[]): Count[] =>
  rows.flatMap(({ facet, count, ...columns }) => {
    if (facet === "all" || !count) return [];
    const value = columns[COLUMNS[facet]];
    const members = value === null ? [] : Array.isArray(value) ? value : [String(value)];
    return members.map((member: string) => ({ facet, value: member, count }));
  });

/** Counts for the facets that share these filters. */
async function count(ctx: Context, caller: Caller, query: Filters, wanted: Facet[]): Promise<Counted> {
  const { source, values, isSample } = await sourceFor(ctx, caller, query, wanted);
  const { rows } = await ctx.pool.query<Row>({
    text: counting(source, wanted),
    values,
  });
  const all = rows.find(({ facet }) => facet === "all")?.count ?? 0;
  return { counts: countsOf(rows), isEstimate: isSample && all > SAMPLE };
}

async function sourceFor(ctx: Context, caller: Caller, query: Filters, wanted: Facet[]): Promise<Source> {
  const currency = currencyOf(ctx, query);
  const cells = await cellsOf(ctx, query);
  if (cells && !wanted.includes("tag"))
    return { source: SOURCES.cells(cells, currency), values: cells.values, isSample: false };
  if (cells?.clauses.length === 0) return { source: SOURCES.tags(), values: [], isSample: false };
  if (!query.search) {
    const where = await whereOf(ctx, caller, query);
    const sample = `select l.* from listings l ${where.text} order by l.purchases desc, l.product_id desc limit ${SAMPLE + 1}`;
    return { source: SOURCES.sample(sample, currency), values: where.values, isSample: true };
  }
  const matches = await listedMatches(ctx, caller, { ...query, search: query.search });
  const sample = `select l.* from (${matches.any(SAMPLE + 1)}) m join listings l on l.product_id = m.product_id`;
  return { source: SOURCES.sample(sample, currency), values: matches.values, isSample: true };
}

/** What the list shows: what the words find, else what they may have been meant to find. */
async function listedMatches(
  ctx: Context,
  caller: Caller,
  query: Filters & { search: string },
): Promise<Matches> {
  const question = await toQuestion(ctx.db, query.search, query.lang);
  const matches = await matchesOf(ctx, caller, query, question);
  const { rows } = await ctx.pool.query({ text: matches.any(1), values: matches.values });
  const meant = rows.length === 0 ? await guess(ctx.db, question) : null;
  return meant ? matchesOf(ctx, caller, query, meant) : matches;
}

/** Facets that ignore the same filters are counted together: each filtered one alone, all others at once. */
async function groupsOf(ctx: Context, query: Filters): Promise<{ query: Filters; wanted: Facet[] }[]> {
  const filtered = facets.filter((facet) => isFiltered(query, facet));
  const others = facets.filter((facet) => !filtered.includes(facet));
  // Cells know no tags: these are counted apart, so that the others may be exact.
  const apart: Facet[] = (await cellsOf(ctx, query)) && others.includes("tag") ? ["tag"] : [];
  return [
    ...filtered.map((facet) => ({ query: without(query, facet), wanted: [facet] })),
    { query, wanted: others.filter((facet) => !apart.includes(facet)) },
    { query, wanted: apart },
  ].filter(({ wanted }) => wanted.length > 0);
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

/** How many products of a list there are by what they can be filtered by, each facet without its own filter. */
export async function readFacets(ctx: Context, caller: Caller, query: Filters): Promise<Facets> {
  if (isOwnShelf(caller, query)) return countFacets(ctx, caller, query);
  return ctx.kept.get(`facets ${JSON.stringify(query)}`, () => countFacets(ctx, ANYBODY, query));
}

async function countFacets(ctx: Context, caller: Caller, query: Filters): Promise<Facets> {
  const groups = await groupsOf(ctx, query);
  const counted = await Promise.all(groups.map(({ query, wanted }) => count(ctx, caller, query, wanted)));
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
