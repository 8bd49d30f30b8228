import { createHash } from "node:crypto";
import type { Caller, Context } from "../context.ts";
import { offsetOf, type Page } from "../db/paging.ts";
import { RawPage } from "../http/envelope.ts";
import { RawJson } from "../http/route.ts";
import { type VolatileNumbers, withNumbers } from "./card.ts";
import { cellsOf } from "./cells.ts";
import { ANYBODY, isOwnShelf, type ListQuery, type Where, whereOf } from "./filters.ts";
import { type Matches, matchesOf } from "./matches.ts";
import { guess, type Question, toQuestion } from "./search.ts";

/** A total is exact up to here; above, counting would cost more than the page itself. */
const EXACT_TOTAL = 10_000;
/** A search lists this many; its total is exact up to here. */
const MAX_FOUND = 1_000;
/** So many of the most bought matches are ordered by how well they match; those after them by how often they sold. */
const RANKED = 300;
/** From here on a page is worth asking for the total first. */
const DEEP = 2_000;
/** Statements worth a name: PostgreSQL keeps every named one. */
const MAX_NAMED_STATEMENTS = 100;

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
  relevance: "purchases",
} as const satisfies Record<ListQuery["sort"], string>;

const named = new Map<string, string>();
/**
 * A name saves planning, which costs more than running a list. Only where one plan fits all values: after five runs of a
 * named statement PostgreSQL freezes one, and a filter's plan depends on what it filters by.
 */
function nameOf(text: string): { name?: string } {
  const known = named.get(text);
  if (known) return { name: known };
  if (named.size >= MAX_NAMED_STATEMENTS) return {};
  const name = `list_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
  named.set(text, name);
  return { name };
}

async function run<Row extends object>(
  ctx: Context,
  text: string,
  values: unknown[],
  fitsAll = values.length === 0,
): Promise<Row[]> {
  const { rows } = await ctx.pool.query<Row>({ ...(fitsAll && nameOf(text)), text, values });
  return rows;
}

type Total = Pick<Page<unknown>, "total" | "totalIsEstimate">;
type Found = Total & { rows: CardRow[] };

interface CardRow extends VolatileNumbers {
  card: string;
}

/** First the ids, from the narrow table; then what is shown of these few. Every order ends with the id. */
const cardsOf = (ids: string, order: string) => `
  select p.card, s.views, s.purchases, s.rating_sum as "ratingSum", s.rating_count as "ratingCount"
    from (${ids}) page
    join products p on p.id = page.product_id
    join product_stats s on s.product_id = page.product_id
   order by ${order}`;

/** How much of the page lies before the end of the list. */
const lengthOf = (query: ListQuery, end: number) => Math.max(0, Math.min(query.limit, end - offsetOf(query)));

/** The first so many of the page; with `total` known, one of the second half is read from the end. */
async function sortedPage(
  ctx: Context,
  source: string,
  values: unknown[],
  query: ListQuery,
  { limit, total = null }: { limit: number; total?: number | null },
): Promise<CardRow[]> {
  if (limit === 0) return [];
  const column = SORT_COLUMNS[query.sort];
  const way = query.sort === "relevance" ? "desc" : query.order;
  const offset = offsetOf(query);
  const fromTheEnd = total !== null && offset > total / 2;
  // Drafts were never published: they come last, and first when the order is turned around.
  const own = query.sort === "publishedAt" && query.author !== undefined;
  const orderOf = (alias: string, way: "asc" | "desc") => {
    const nulls = own ? (way === "desc" ? " nulls last" : " nulls first") : "";
    return `${alias}.${column} ${way}${nulls}, ${alias}.product_id ${way}`;
  };
  const walked = fromTheEnd ? (way === "asc" ? "desc" : "asc") : way;
  const ids = `
    select l.product_id, l.${column} from ${source}
     order by ${orderOf("l", walked)} limit ${limit} offset ${fromTheEnd ? total - offset - limit : offset}`;
  return run(ctx, cardsOf(ids, orderOf("page", way)), values);
}

/** The first 300 by how well they match, the others by how often they were bought. */
function rankedPage(ctx: Context, matches: Matches, query: ListQuery, limit: number): Promise<CardRow[]> {
  const offset = offsetOf(query);
  const ids = `
    select product_id, purchases, case when place <= ${RANKED} then ts_rank(search, ${matches.asked}) end as rank
      from (select m.*, row_number() over (order by m.purchases desc, m.product_id desc) as place
              from (${matches.mostBought(Math.max(RANKED, offset + limit))}) m) placed
     order by rank desc nulls last, purchases desc, product_id desc limit ${limit} offset ${offset}`;
  const order = "page.rank desc nulls last, page.purchases desc, page.product_id desc";
  return run(ctx, cardsOf(ids, order), matches.values, matches.byWordsAlone);
}

async function search(ctx: Context, matches: Matches, query: ListQuery): Promise<Found> {
  const counting = run<{ total: number }>(
    ctx,
    `select count(*) as total from (${matches.any(MAX_FOUND + 1)}) found`,
    matches.values,
    matches.byWordsAlone,
  );
  const limit = lengthOf(query, MAX_FOUND);
  const ranking = query.sort === "relevance" && limit > 0 ? rankedPage(ctx, matches, query, limit) : null;
  const [[counted], ranked] = await Promise.all([counting, ranking]);
  const { total } = counted!;
  // Few matches are found and then sorted; of many the order is walked, which meets enough of them soon.
  const few = `(select l.* from (${matches.any(MAX_FOUND)}) m join listings l on l.product_id = m.product_id) l`;
  const source = total > MAX_FOUND ? matches.all : few;
  const rows = ranked ?? (await sortedPage(ctx, source, matches.values, query, { limit }));
  return { rows, ...bounded(total, MAX_FOUND) };
}

async function browse(ctx: Context, where: Where, query: ListQuery): Promise<Found> {
  const cells = await cellsOf(ctx, query);
  const source = `listings l ${where.text}`;
  if (cells && offsetOf(query) > DEEP) {
    const total = await countCells(ctx, cells);
    const limit = lengthOf(query, total);
    return { rows: await sortedPage(ctx, source, where.values, query, { limit, total }), total };
  }
  const [rows, counted] = await Promise.all([
    sortedPage(ctx, source, where.values, query, { limit: query.limit }),
    cells ? countCells(ctx, cells).then((total) => ({ total })) : countSome(ctx, source, where.values),
  ]);
  return { rows, ...counted };
}

async function countSome(ctx: Context, source: string, values: unknown[]): Promise<Total> {
  const text = `select count(*) as total from (select 1 from ${source} limit ${EXACT_TOTAL + 1}) found`;
  const [counted] = await run<{ total: number }>(ctx, text, values);
  return bounded(counted!.total, EXACT_TOTAL);
}

const bounded = (total: number, bound: number): Total =>
  total > bound ? { total: bound, totalIsEstimate: true } : { total };

async function countCells(ctx: Context, cells: Where): Promise<number> {
  const text = `select coalesce(sum(c.products), 0)::bigint as total from facet_counts c ${cells.text}`;
  const [counted] = await run<{ total: number }>(ctx, text, cells.values);
  return counted!.total;
}

async function find(ctx: Context, caller: Caller, query: ListQuery, question: Question | null) {
  const { rows, ...counted } = question
    ? await search(ctx, await matchesOf(ctx, caller, query, question), query)
    : await browse(ctx, await whereOf(ctx, caller, query), query);
  return {
    items: rows.map((row) => new RawJson(withNumbers(row.card, row, ctx.links.origin()))),
    ...counted,
    // Counted beside the page, not with it: something may have come in between.
    total: Math.max(counted.total, rows.length > 0 ? offsetOf(query) + rows.length : 0),
  } satisfies Page<RawJson>;
}

/**
 * Published products that fit the filters, or with `author=me` the caller's own in every state. What everybody may see
 * is asked for as nobody in particular, and kept.
 */
export async function listProducts(ctx: Context, caller: Caller, query: ListQuery) {
  if (isOwnShelf(caller, query)) return findProducts(ctx, caller, query);
  const find = async () => new RawPage(await findProducts(ctx, ANYBODY, query));
  return ctx.kept.get(`products ${JSON.stringify(query)}`, find);
}

async function findProducts(ctx: Context, caller: Caller, query: ListQuery): Promise<Page<RawJson>> {
  const question = query.search ? await toQuestion(ctx.db, query.search, query.lang) : null;
  const found = await find(ctx, caller, query, question);
  const meant = question && found.total === 0 ? await guess(ctx.db, question) : null;
  if (!meant) return found;
  const again = await find(ctx, caller, query, meant);
  if (again.total === 0) return found;
  return { ...again, correctedSearch: meant.map(({ word }) => word).join(" ") };
}
