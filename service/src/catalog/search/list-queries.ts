import type { Context } from "../../core/context.ts";
import { firstOf, required } from "../../core/required.ts";
import { offsetOf, type Page } from "../../platform/db/paging.ts";
import type { ProductCounters } from "./card.ts";
import type { TotalQuery } from "./facet-cells.ts";
import { type ListQuery, scoreNameOf } from "./filters.ts";
import { type Matches, RANKED_COLUMNS } from "./matches.ts";
import { hideFromPlanner, runStatement } from "./named-statements.ts";

/** The bound of exact totals: above, counting would cost more than the page. */
const EXACT_TOTAL = 10_000;
/** The most bought matches are ranked by relevance, the rest by sales. */
const MAX_RANKED = 300;
const DEFAULT_LIMIT = 20;

const SORT_COLUMNS = {
  createdAt: "created_at",
  updatedAt: "updated_at",
  publishedAt: "published_at",
  price: "price_minor",
  title: "title",
  rating: "rating_score",
  popularity: "purchases",
  views: "views",
  trending: "trending",
  passRate: "low",
  relevance: "purchases",
} as const satisfies Record<ListQuery["sort"], string>;

/** PostgreSQL stores every named statement per connection, so only frequent queries get a name. */
const isDefaultPage = ({ page, limit }: ListQuery) => page === 1 && limit === DEFAULT_LIMIT;

export interface CardRow extends ProductCounters {
  card: string;
}

/** As SQL: the row of `product_scores` with the best model. */
const BEST_MODEL = "''";

/** Selects ids from the narrow table first, then the cards of the page. Every order ends with the id. */
const cardsOf = (ids: string, order: string, scoreName = BEST_MODEL) =>
  `select ${CARD_COLUMNS} ${cardsFrom(ids, scoreName)} order by ${order}`;

const CARD_COLUMNS =
  'p.card, s.views, s.purchases, s.rating_sum as "ratingSum", s.rating_count as "ratingCount", m.score::text as score';
const cardsFrom = (ids: string, scoreName: string) => `
    from (${ids}) page
    join products p on p.id = page.product_id
    join product_stats s on s.product_id = page.product_id
    left join product_scores m on m.product_id = page.product_id and m.name = ${scoreName}`;

interface ListingSource {
  from: string;
  where: string;
  values: unknown[];
}

/** The model whose score the list shows, as SQL, and the values with it. */
function withScoreName(query: ListQuery, values: unknown[]) {
  if (query.testedOn === undefined) return { scoreName: BEST_MODEL, values };
  return { scoreName: `$${values.length + 1}`, values: [...values, scoreNameOf(query)] };
}

/** With a known `total`, a page of the second half is read from the end. */
export async function listSortedPage(
  ctx: Context,
  listings: ListingSource,
  query: ListQuery,
  { limit, total = null }: { limit: number; total?: number | null },
): Promise<CardRow[]> {
  if (limit === 0) return [];
  const { scoreName, values } = withScoreName(query, listings.values);
  const offset = offsetOf(query);
  const fromTheEnd = total !== null && offset > total / 2;
  const slice = `limit ${limit} offset ${fromTheEnd ? total - offset - limit : offset}`;
  const { ids, order } = sortedIds(listings, query, { slice, fromTheEnd, scoreName });
  return runStatement(
    ctx,
    cardsOf(ids, order, scoreName),
    values,
    values.length === 0 && isDefaultPage(query),
  );
}

interface IdSlice {
  /** `limit` and `offset`, as SQL. */
  slice: string;
  fromTheEnd?: boolean;
  scoreName: string;
}

/** The ids of a page as SQL, and the order of its rows. */
function sortedIds(
  listings: Omit<ListingSource, "values">,
  query: ListQuery,
  { slice, fromTheEnd = false, scoreName }: IdSlice,
) {
  const column = SORT_COLUMNS[query.sort];
  // The listing has the best model's rate; that of another one is read in the order of its own index.
  const isOfOneModel = query.sort === "passRate" && query.testedOn !== undefined;
  const [sorted, from] = isOfOneModel
    ? ["m", `product_scores m join ${listings.from} on l.product_id = m.product_id and m.name = ${scoreName}`]
    : ["l", listings.from];
  const way = query.sort === "relevance" ? "desc" : query.order;
  // Drafts have no publication date: they come last, in ascending order first.
  const own = query.sort === "publishedAt" && query.author !== undefined;
  const isNullable = own || query.sort === "passRate";
  const orderOf = (alias: string, way: "asc" | "desc") => {
    const nulls = isNullable ? (way === "desc" ? " nulls last" : " nulls first") : "";
    return `${alias}.${column} ${way}${nulls}, ${alias}.product_id ${way}`;
  };
  const walked = fromTheEnd ? (way === "asc" ? "desc" : "asc") : way;
  const ids = `
    select ${sorted}.product_id, ${sorted}.${column} from ${from} ${listings.where}
     order by ${orderOf(sorted, walked)} ${slice}`;
  return { ids, order: orderOf("page", way) };
}

/** Products with the most words first. Of these, the first 300 are ranked by relevance, the others by sales. */
export function listRankedPage(
  ctx: Context,
  matches: Matches,
  query: ListQuery,
  limit: number,
): Promise<CardRow[]> {
  const { scoreName, values } = withScoreName(query, matches.rankedValues);
  const found = matches.mostBought(mostRanked(query, limit));
  const slice = `limit ${limit} offset ${offsetOf(query)}`;
  const { ids, order } = rankedIds(found, matches, slice);
  return runStatement(ctx, cardsOf(ids, order, scoreName), values);
}

/** The ranking must know so many of the most bought. */
const mostRanked = (query: ListQuery, limit: number) => Math.max(MAX_RANKED, offsetOf(query) + limit);

/** The ids of a page of `found`, as SQL, and the order of its rows. */
function rankedIds(found: string, matches: Matches, slice: string) {
  const counted = matches.matchedWords
    ? `(select m.*, ${matches.matchedWords} as words from (${found}) m) m`
    : `(${found}) m`;
  const byWords = (alias: string) => (matches.matchedWords ? `${alias}.words desc, ` : "");
  const orderOf = (alias: string) =>
    `${byWords(alias)}${alias}.rank desc nulls last, ${alias}.purchases desc, ${alias}.product_id desc`;
  const ids = `
    select * from (
      select placed.*, case when place <= ${MAX_RANKED} then ts_rank(search, ${matches.tsQuery}) end as rank
        from (select m.*, row_number() over (order by ${byWords("m")}m.purchases desc, m.product_id desc) as place
                from ${counted}) placed) ranked
     order by ${orderOf("ranked")} ${slice}`;
  return { ids, order: orderOf("page") };
}

/**
 * The count and the page in one statement, which searches the words once. Up to `bound` matches are all there is to rank. Of
 * more, the ones found have every match of each reach but the last; the words are searched again where these do not suffice.
 */
export function listCountedRankedPage(
  ctx: Context,
  matches: Matches,
  query: ListQuery,
  { limit, bound }: { limit: number; bound: number },
): Promise<Total & { rows: CardRow[] }> {
  const { slice, scoreName, values } = withSlice(matches, query, limit);
  const ranked = hiddenIn(matches, `$${values.push(mostRanked(query, limit))}::bigint`);
  const columns = RANKED_COLUMNS.join(", ");
  const found = `
    (select ${columns} from found where (select is_enough from counted) order by purchases desc, product_id desc limit ${ranked})
    union all
    (select ${columns} from (${matches.mostBought(ranked)}) most where not (select is_enough from counted))`;
  const isEnough = `count(*) <= ${bound} or (select count(*) from found where reach > (select min(reach) from found)) >= ${ranked}`;
  const page = {
    ...{ found: matches.any(bound + 1, [...RANKED_COLUMNS, "reach"]), isEnough },
    ...{ ...rankedIds(found, matches, slice), scoreName, values },
  };
  return readCountedPage(ctx, page, { bound, isNamed: matches.hasFixedPlan });
}

const hiddenIn = ({ hasFixedPlan }: Matches, value: string) =>
  hasFixedPlan ? hideFromPlanner(value) : value;

/** The page as values, so that all pages share a statement. */
function withSlice(matches: Matches, query: ListQuery, limit: number) {
  const { scoreName, values } = withScoreName(query, [...matches.values, limit, offsetOf(query)]);
  const [most, skipped] = [1, 2].map((after) =>
    hiddenIn(matches, `$${matches.values.length + after}::bigint`),
  );
  const slice = `limit ${most} offset ${skipped}`;
  return { scoreName, values, slice };
}

/** The same in another order. Rows are null for more than `bound` matches: those are read in that order. */
export async function listCountedSortedPage(
  ctx: Context,
  matches: Matches,
  query: ListQuery,
  { limit, bound }: { limit: number; bound: number },
): Promise<Total & { rows: CardRow[] | null }> {
  const isByPrice = query.sort === "price";
  const source = isByPrice ? "found l" : "found f join listings l on l.product_id = f.product_id";
  const { slice, scoreName, values } = withSlice(matches, query, limit);
  const listings = { from: source, where: "where (select is_enough from counted)" };
  const page = {
    found: matches.any(bound + 1, isByPrice ? ["product_id", "price_minor"] : ["product_id"]),
    isEnough: `count(*) <= ${bound}`,
    ...{ ...sortedIds(listings, query, { slice, scoreName }), scoreName, values },
  };
  const { rows, ...counted } = await readCountedPage(ctx, page, {
    bound,
    isNamed: matches.hasFixedPlan,
  });
  return { rows: counted.totalIsEstimate ? null : rows, ...counted };
}

interface CountedIds {
  found: string;
  /** Whether the page can be read from `found`. */
  isEnough: string;
  /** The ids of the page, by `found` and `counted`. */
  ids: string;
  order: string;
  scoreName: string;
  values: unknown[];
}

async function readCountedPage(
  ctx: Context,
  { found, isEnough, ids, order, scoreName, values }: CountedIds,
  { bound, isNamed }: { bound: number; isNamed: boolean },
): Promise<Total & { rows: CardRow[] }> {
  const text = `
    with found as materialized (${found}),
    counted as materialized (select count(*) as total, ${isEnough} as is_enough from found)
    select counted.total, cards.*
      from counted
      left join (select ${CARD_COLUMNS}, row_number() over (order by ${order}) as place ${cardsFrom(ids, scoreName)}) cards on true
     order by cards.place`;
  const rows = await runStatement<CardRow & { total: number }>(ctx, text, values, isNamed);
  // A page without products has a row with the total alone.
  return { ...bounded(firstOf(rows).total, bound), rows: rows.filter(({ card }) => card !== null) };
}

/** So many products of the category, and so many with a tag in common, are compared. */
const MAX_CANDIDATES = 300;

export interface LikenessOf {
  tags: string[];
  section: string | null;
}

export async function findLikeness(ctx: Context, productId: string): Promise<LikenessOf | undefined> {
  const text = "select tags, section from listings where product_id = $1";
  return (await runStatement<LikenessOf>(ctx, text, [productId]))[0];
}

/** By tags in common, then the category, the words of the title, and the sales. Products of other types count less. */
export function listSimilarCards(
  ctx: Context,
  productId: string,
  { tags, section }: LikenessOf,
  limit: number,
): Promise<CardRow[]> {
  // The tags are a value of their own, because only then the index over them is used.
  const ids = `
    with this as (select * from listings where product_id = $1),
    candidates as (
      (select l.* from listings l where l.status = 'published' and l.section = $3
        order by l.purchases desc, l.product_id desc limit ${MAX_CANDIDATES})
      union
      (select l.* from listings l where l.status = 'published' and l.tags && $2::text[] limit ${MAX_CANDIDATES}))
    select l.product_id, l.purchases,
           2 * cardinality(array(select unnest(l.tags) intersect select unnest(this.tags)))
           + (l.category is not distinct from this.category)::int + (l.type = this.type)::int
           + 2 * similarity(l.title, this.title) as likeness
      from candidates l cross join this
     where l.product_id <> $1
     order by likeness desc, l.purchases desc, l.product_id limit $4`;
  const order = "page.likeness desc, page.purchases desc, page.product_id";
  return runStatement(ctx, cardsOf(ids, order), [productId, tags, section, limit]);
}

export type Total = Pick<Page<unknown>, "total" | "totalIsEstimate">;

const bounded = (total: number, bound: number): Total =>
  total > bound ? { total: bound, totalIsEstimate: true } : { total };

export async function countMatches(ctx: Context, matches: Matches, bound: number): Promise<Total> {
  const text = `select count(*) as total from (${matches.any(bound + 1, ["product_id"])}) found`;
  const [counted] = await runStatement<{ total: number }>(ctx, text, matches.values, matches.hasFixedPlan);
  return bounded(required(counted, "the count of a list").total, bound);
}

export async function countBounded(ctx: Context, { from, where, values }: ListingSource): Promise<Total> {
  const text = `select count(*) as total from (select 1 from ${from} ${where} limit ${EXACT_TOTAL + 1}) found`;
  const [counted] = await runStatement<{ total: number }>(ctx, text, values);
  return bounded(required(counted, "the count of a list").total, EXACT_TOTAL);
}

export async function runTotalQuery(ctx: Context, { text, values }: TotalQuery): Promise<{ total: number }> {
  const [counted] = await runStatement<{ total: number }>(ctx, text, values, values.length === 0);
  return required(counted, "the count of a list");
}
