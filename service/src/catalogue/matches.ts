import type { Caller, Context } from "../context.ts";
import { type Filters, PUBLISHED, whereOf } from "./filters.ts";
import { type Question, toTsQuery } from "./search.ts";

/** `search_documents.reach`, from what was bought most to what never was: 0015_listings.sql. */
const REACHES = [8, 7, 6, 5, 4, 3, 2, 1, 0];

/** What a search finds, as SQL that others sort, count or cut. */
export interface Matches {
  values: unknown[];
  /** `tsquery` of what is asked. */
  asked: string;
  /** Whether nothing but the words decides, so that one plan fits all values. */
  byWordsAlone: boolean;
  /** Rows of product_id, purchases and search, at most `limit`: always the most bought ones. */
  mostBought(limit: number): string;
  /** The same rows in no order, which is cheaper. */
  any(limit: number): string;
  /** All matches, as a source of `l.*` that has no index of its own: for an order that is walked. */
  all: string;
}

/**
 * Finds by words first. Of what is for sale each reach has an index of words, and one is only looked into when those
 * above it had too few: a common word costs what is wanted of it, not what there is. Within a reach the order is that of
 * an expression, so that PostgreSQL sorts what the index of words found, and walks no order past what does not match.
 */
export async function matchesOf(
  ctx: Context,
  caller: Caller,
  query: Filters,
  question: Question,
): Promise<Matches> {
  const where = await whereOf(ctx, caller, query);
  const asked = `${where.value(toTsQuery(question))}::tsquery`;
  const matching = `d.search @@ ${asked}`;
  const isForSale = where.clauses.includes(PUBLISHED);
  // What has a reach is published.
  const filters = where.clauses.filter((clause) => clause !== PUBLISHED).map(besideWords);
  const byWordsAlone = isForSale && !filters.some((clause) => clause.startsWith("l."));
  const from = `search_documents d ${byWordsAlone ? "" : "join listings l on l.product_id = d.product_id"}`;
  const select = `select d.product_id, d.purchases, d.search from ${from} where ${[matching, ...filters].join(" and ")}`;
  const inTurn = (order: string) =>
    isForSale
      ? REACHES.map((reach) => `(${select} and d.reach = ${reach} ${order})`).join(" union all ")
      : `${select} ${order}`;
  // Offset 0 keeps the limit outside: inside, it would talk PostgreSQL into reading the table until it has enough.
  const first = (order: string, limit: number) => `select * from (${inTurn(order)}) matching limit ${limit}`;
  return {
    values: where.values,
    asked,
    byWordsAlone,
    mostBought: (limit) => first("order by d.purchases + 0 desc, d.product_id desc", limit),
    any: (limit) => first("offset 0", limit),
    all: `(select l.* from listings l join search_documents d on d.product_id = l.product_id
            where ${[matching, ...where.clauses].join(" and ")}) l`,
  };
}

/** The category stands beside the words, too: a search in one needs no listings. */
const besideWords = (clause: string) => clause.replace(/^l\.(section|category) /, "d.$1 ");
