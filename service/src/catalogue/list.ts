import { createHash } from "node:crypto";
import type { Caller, Context } from "../context.ts";
import { offsetOf, type Page } from "../db/paging.ts";
import { RawPage } from "../http/envelope.ts";
import { RawJson } from "../http/route.ts";
import { type VolatileNumbers, withNumbers } from "./card.ts";
import { ANYBODY, isOwnShelf, type ListQuery, type Where, whereOf } from "./filters.ts";
import { guess, type Question, toQuestion, toTsQuery } from "./search.ts";

/** A total is exact up to here; above, counting would cost more than the page itself. */
const EXACT_TOTAL = 10_000;
/** A search lists this many; its total is exact up to here. */
const MAX_FOUND = 1_000;
/** So many of the most bought matches are ordered by how well they match; those after them by how often they sold. */
const RANKED = 300;
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
 * A name saves planning, which costs more than running a list. Only where no values come with it: after five runs of a
 * named statement PostgreSQL freezes one plan for all values, and a filter's plan depends on what it filters by.
 */
function nameOf(text: string, values: unknown[]): { name?: string } {
  if (values.length > 0) return {};
  const known = named.get(text);
  if (known) return { name: known };
  if (named.size >= MAX_NAMED_STATEMENTS) return {};
  const name = `list_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`;
  named.set(text, name);
  return { name };
}

async function run<Row extends object>(ctx: Context, text: string, values: unknown[]): Promise<Row[]> {
  const { rows } = await ctx.pool.query<Row>({ ...nameOf(text, values), text, values });
  return rows;
}

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

function sortedPage(ctx: Context, where: Where, query: ListQuery): Promise<CardRow[]> {
  const column = SORT_COLUMNS[query.sort];
  const way = query.sort === "relevance" ? "desc" : query.order;
  // Drafts were never published: they come last, and first when the order is turned around.
  const own = query.sort === "publishedAt" && query.author !== undefined;
  const nulls = own ? (way === "desc" ? " nulls last" : " nulls first") : "";
  const order = (alias: string) => `${alias}.${column} ${way}${nulls}, ${alias}.product_id ${way}`;
  const ids = `
    select l.product_id, l.${column} from listings l where ${where.sql}
     order by ${order("l")} limit ${query.limit} offset ${offsetOf(query)}`;
  return run(ctx, cardsOf(ids, order("page")), where.values);
}

function rankedPage(ctx: Context, where: Where, asked: string, query: ListQuery): Promise<CardRow[]> {
  const offset = offsetOf(query);
  const limit = Math.min(query.limit, MAX_FOUND - offset);
  const order = (alias: string) =>
    `${alias}.rank desc nulls last, ${alias}.purchases desc, ${alias}.product_id desc`;
  const ids = `
    select product_id, purchases, case when place <= ${RANKED} then ts_rank(search, ${asked}::tsquery) end as rank
      from (select l.product_id, l.purchases, l.search,
                   row_number() over (order by l.purchases desc, l.product_id desc) as place
              from listings l where ${where.sql}
             order by l.purchases desc, l.product_id desc limit ${Math.max(RANKED, offset + limit)}) likely
     order by rank desc nulls last, purchases desc, product_id desc limit ${limit} offset ${offset}`;
  return run(ctx, cardsOf(ids, order("page")), where.values);
}

async function pageOf(ctx: Context, caller: Caller, query: ListQuery, question: Question | null) {
  const where = await whereOf(ctx, caller, query);
  if (!question) return sortedPage(ctx, where, query);
  if (question.length === 0 || offsetOf(query) >= MAX_FOUND) return [];
  const asked = where.value(toTsQuery(question));
  where.clauses.push(`l.search @@ ${asked}::tsquery`);
  return query.sort === "relevance"
    ? rankedPage(ctx, where, asked, query)
    : sortedPage(ctx, where, { ...query, limit: Math.min(query.limit, MAX_FOUND - offsetOf(query)) });
}

async function countOf(ctx: Context, caller: Caller, query: ListQuery, question: Question | null) {
  if (question?.length === 0) return 0;
  const where = await whereOf(ctx, caller, query);
  if (question) where.add("l.search @@ $::tsquery", toTsQuery(question));
  const bound = question ? MAX_FOUND : EXACT_TOTAL;
  const text = `select count(*) as total
    from (select 1 from listings l where ${where.sql} limit ${bound + 1}) found`;
  const rows = await run<{ total: number }>(ctx, text, where.values);
  return rows[0]!.total;
}

async function answerOf(ctx: Context, caller: Caller, query: ListQuery, question: Question | null) {
  const [rows, total] = await Promise.all([
    pageOf(ctx, caller, query, question),
    countOf(ctx, caller, query, question),
  ]);
  return { rows, total };
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
  let { rows, total } = await answerOf(ctx, caller, query, question);
  let correctedSearch: string | undefined;
  const meant = question && total === 0 ? await guess(ctx.db, question) : null;
  if (meant) {
    ({ rows, total } = await answerOf(ctx, caller, query, meant));
    if (total > 0) correctedSearch = meant.map(({ word }) => word).join(" ");
  }
  const bound = question ? MAX_FOUND : EXACT_TOTAL;
  return {
    items: rows.map((row) => new RawJson(withNumbers(row.card, row))),
    total: Math.min(total, bound),
    ...(total > bound && { totalIsEstimate: true as const }),
    ...(correctedSearch && { correctedSearch }),
  };
}
