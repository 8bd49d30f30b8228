import { createHash } from "node:crypto";
import type { Context } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import { offsetOf, type Page } from "../../platform/db/paging.ts";
import type { ProductCounters } from "./card.ts";
import type { TotalQuery } from "./facet-cells.ts";
import { type ListQuery, scoreNameOf } from "./filters.ts";
import type { Matches } from "./matches.ts";

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

const statementNames = new Map<string, string>();
/**
 * A named statement saves planning, which costs more than running a list. Only for queries whose one plan fits all
 * values: after five runs PostgreSQL fixes the plan, and a good plan depends on the filter's value.
 */
function statementName(text: string): string {
  const name =
    statementNames.get(text) ?? `list_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
  statementNames.set(text, name);
  return name;
}

/** PostgreSQL stores every named statement per connection, so only frequent queries get a name. */
const isDefaultPage = ({ page, limit }: ListQuery) => page === 1 && limit === DEFAULT_LIMIT;

async function run<Row extends object>(
  ctx: Context,
  text: string,
  values: unknown[],
  isNamed = false,
): Promise<Row[]> {
  const { rows } = await ctx.pool.query<Row>({ ...(isNamed && { name: statementName(text) }), text, values });
  return rows;
}

export interface CardRow extends ProductCounters {
  card: string;
}

/** As SQL: the row of `product_scores` with the best model. */
const BEST_MODEL = "''";

/** Selects ids from the narrow table first, then the cards of the page. Every order ends with the id. */
const cardsOf = (ids: string, order: string, scoreName = BEST_MODEL) => `
  select p.card, s.views, s.purchases, s.rating_sum as "ratingSum", s.rating_count as "ratingCount", m.score::text as score
    from (${ids}) page
    join products p on p.id = page.product_id
    join product_stats s on s.product_id = page.product_id
    left join product_scores m on m.product_id = page.product_id and m.name = ${scoreName}
   order by ${order}`;

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
  const column = SORT_COLUMNS[query.sort];
  // The listing has the best model's rate; that of another one is read in the order of its own index.
  const isOfOneModel = query.sort === "passRate" && query.testedOn !== undefined;
  const [sorted, from] = isOfOneModel
    ? ["m", `product_scores m join ${listings.from} on l.product_id = m.product_id and m.name = ${scoreName}`]
    : ["l", listings.from];
  const way = query.sort === "relevance" ? "desc" : query.order;
  const offset = offsetOf(query);
  const fromTheEnd = total !== null && offset > total / 2;
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
     order by ${orderOf(sorted, walked)} limit ${limit} offset ${fromTheEnd ? total - offset - limit : offset}`;
  return run(
    ctx,
    cardsOf(ids, orderOf("page", way), scoreName),
    values,
    values.length === 0 && isDefaultPage(query),
  );
}

/** Products with the most words first. Of these, the first 300 are ranked by relevance, the others by sales. */
export function listRankedPage(
  ctx: Context,
  matches: Matches,
  query: ListQuery,
  limit: number,
): Promise<CardRow[]> {
  const offset = offsetOf(query);
  const found = `(${matches.mostBought(Math.max(MAX_RANKED, offset + limit))}) m`;
  const counted = matches.matchedWords
    ? `(select m.*, ${matches.matchedWords} as words from ${found}) m`
    : found;
  const byWords = (alias: string) => (matches.matchedWords ? `${alias}.words desc, ` : "");
  const orderOf = (alias: string) =>
    `${byWords(alias)}${alias}.rank desc nulls last, ${alias}.purchases desc, ${alias}.product_id desc`;
  const ids = `
    select * from (
      select placed.*, case when place <= ${MAX_RANKED} then ts_rank(search, ${matches.tsQuery}) end as rank
        from (select m.*, row_number() over (order by ${byWords("m")}m.purchases desc, m.product_id desc) as place
                from ${counted}) placed) ranked
     order by ${orderOf("ranked")} limit ${limit} offset ${offset}`;
  const order = orderOf("page");
  const { scoreName, values } = withScoreName(query, matches.rankedValues);
  return run(ctx, cardsOf(ids, order, scoreName), values, matches.isWordsOnly && isDefaultPage(query));
}

/** So many products of the category, and so many with a tag in common, are compared. */
const MAX_CANDIDATES = 300;

export interface LikenessOf {
  tags: string[];
  section: string | null;
}

export async function findLikeness(ctx: Context, productId: string): Promise<LikenessOf | undefined> {
  const text = "select tags, section from listings where product_id = $1";
  return (await run<LikenessOf>(ctx, text, [productId]))[0];
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
  return run(ctx, cardsOf(ids, order), [productId, tags, section, limit]);
}

export type Total = Pick<Page<unknown>, "total" | "totalIsEstimate">;

const bounded = (total: number, bound: number): Total =>
  total > bound ? { total: bound, totalIsEstimate: true } : { total };

export async function countMatches(ctx: Context, matches: Matches, bound: number): Promise<Total> {
  const text = `select count(*) as total from (${matches.any(bound + 1)}) found`;
  const [counted] = await run<{ total: number }>(ctx, text, matches.values, matches.isWordsOnly);
  return bounded(required(counted, "the count of a list").total, bound);
}

export async function countBounded(ctx: Context, { from, where, values }: ListingSource): Promise<Total> {
  const text = `select count(*) as total from (select 1 from ${from} ${where} limit ${EXACT_TOTAL + 1}) found`;
  const [counted] = await run<{ total: number }>(ctx, text, values);
  return bounded(required(counted, "the count of a list").total, EXACT_TOTAL);
}

export async function runTotalQuery(ctx: Context, { text, values }: TotalQuery): Promise<{ total: number }> {
  const [counted] = await run<{ total: number }>(ctx, text, values, values.length === 0);
  return required(counted, "the count of a list");
}
