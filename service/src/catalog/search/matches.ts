import type { Caller, Context } from "../../core/context.ts";
import { firstOf } from "../../core/required.ts";
import { type Filters, listConditions, PUBLISHED, type Where } from "./filters.ts";
import { hideFromPlanner } from "./named-statements.ts";
import {
  matchAllTerms,
  matchAnyTerm,
  matchAtLeast,
  matchTerm,
  mayMatch,
  type SearchTerms,
} from "./search-terms.ts";

/** Values of `search_documents.reach`, from most to least bought: 0015_listings.sql. */
const REACHES = [8, 7, 6, 5, 4, 3, 2, 1, 0];

/** More words have too many combinations to search for each number of matches. Then all, two and one are searched. */
const MAX_EXACT_WORDS = 5;
/** Above MAX_EXACT_WORDS, this many of the most bought are compared by their number of words. */
const MAX_COMPARED = 1_000;

export interface SearchRequest {
  terms: SearchTerms;
  words: "every" | "any";
}

export type DocumentColumn =
  | "product_id"
  | "purchases"
  | "search"
  | "reach"
  | "type"
  | "category"
  | "currency"
  | "price_minor"
  | "compatibility"
  | "tags"
  | "rating_band"
  | "tested_on"
  | "pass_band";

/** A search result as SQL fragments to sort, count or limit. */
export interface Matches {
  values: unknown[];
  /** The values for `mostBought` and `matchedWords`. */
  rankedValues: unknown[];
  tsQuery: string;
  /** The number of words that row `m` matches; null where all rows match every word. */
  matchedWords: string | null;
  /** Whether only the index over the documents can be used, so that one plan fits all values. */
  hasFixedPlan: boolean;
  /** Rows of product_id, purchases and search, at least `limit`, a number or SQL, if there are: those with most words, of these the most bought. */
  mostBought(limit: number | string): string;
  /** The columns of at most `limit` documents in no order, which is cheaper. */
  any(limit: number, columns: DocumentColumn[]): string;
  /** The columns of all documents, to be read from a subquery as far as they are needed. */
  inAnyOrder(columns: DocumentColumn[]): string;
  /** All matches as a source of `l.*` without an index, to be read in a given order. */
  all: string;
}

/**
 * Searches the word indexes from the most bought reach down, and reads a lower one only when the limit is not reached.
 * So a common word costs the page, not all its matches. Sorting by an expression makes PostgreSQL sort the index matches
 * instead of scanning an ordered index past rows that do not match.
 */
export async function buildMatches(
  ctx: Context,
  caller: Caller,
  query: Filters,
  { terms, words }: SearchRequest,
): Promise<Matches> {
  const where = await listConditions(ctx, caller, query);
  const { isForSale, hasListings, from, filters } = sourceOf(where);
  const hasFixedPlan = !hasListings && words === "every";
  const tsQuery = (text: string) => `${where.value(text)}::tsquery`;
  // Without a word, the query of any word is empty and matches nothing.
  const isEach = words === "every" && terms.length > 0;
  const requests = isEach ? terms.map((term) => tsQuery(matchTerm(term))) : [tsQuery(matchAnyTerm(terms))];
  const matching = matchEach(hasFixedPlan ? requests.map(hideFromPlanner) : requests);
  const byReach = (matching: string, order: string, columns: DocumentColumn[]) => {
    const listed = columns.map((column) => `d.${column}`).join(", ");
    const select = `select ${listed} from ${from} where ${[matching, ...filters].join(" and ")}`;
    return isForSale
      ? REACHES.map((reach) => `(${select} and d.reach = ${reach} ${order})`).join(" union all ")
      : `(${select} ${order})`;
  };
  // An outer limit: as inner limit, it would make PostgreSQL scan the table until it has enough rows.
  const first = (rows: string, limit: number | string) => `select * from (${rows}) matching limit ${limit}`;
  const mostBoughtOf = (matching: string) =>
    byReach(matching, "order by d.purchases + 0 desc, d.product_id desc", RANKED_COLUMNS);
  // PostgreSQL refuses values that the statement does not use, hence a copy.
  const values = [...where.values];
  const byNumber = words === "any" ? stepsByWordCount(terms, tsQuery) : null;
  return {
    values,
    rankedValues: where.values,
    tsQuery: requests.join(" && "),
    matchedWords: byNumber?.matchedWords ?? null,
    hasFixedPlan,
    mostBought: (limit) =>
      byNumber
        ? first(byNumber.steps.map(mostBoughtOf).join(" union all "), byNumber.compared(limit))
        : first(mostBoughtOf(matching), limit),
    any: (limit, columns) => first(byReach(matching, "offset 0", columns), limit),
    inAnyOrder: (columns) => byReach(matching, "offset 0", columns),
    all: `(select l.* from listings l join search_documents d on d.product_id = l.product_id
            where ${[matchEach(requests), ...where.clauses].join(" and ")}) l`,
  };
}

/** A condition for each word: the index reads them in half the time of one condition with all words. */
const matchEach = (tsQueries: string[]) => tsQueries.map((query) => `d.search @@ ${query}`).join(" and ");

/** What the ranking needs of a document. */
export const RANKED_COLUMNS: DocumentColumn[] = ["product_id", "purchases", "search"];

/** The documents within the filters. Listings are joined only for a filter that `onSearchDocuments` leaves. */
function sourceOf({ clauses }: Where) {
  const isForSale = clauses.includes(PUBLISHED);
  // Rows with a reach are published.
  const filters = clauses.filter((clause) => clause !== PUBLISHED).map(onSearchDocuments);
  const hasListings = !isForSale || filters.some((clause) => clause.startsWith("l."));
  const from = `search_documents d ${hasListings ? "join listings l on l.product_id = d.product_id" : ""}`;
  return { isForSale, hasListings, from, filters };
}

/** Conditions from most matched words to fewest; each row matches at most one of them. */
function stepsByWordCount(terms: SearchTerms, tsQuery: (text: string) => string) {
  const isExact = terms.length <= MAX_EXACT_WORDS;
  const most = terms.length;
  const counts = isExact ? terms.map((_, at) => most - at) : [most, 2, 1];
  const steps = counts.map((count) => `d.search @@ ${tsQuery(matchAtLeast(terms, count))}`);
  const matched = terms.map((term) => `(m.search @@ ${tsQuery(matchAllTerms([term]))})::int`);
  return {
    steps: steps.map((step, at) => (at === 0 ? step : `${step} and not ${steps[at - 1]}`)),
    matchedWords: matched.join(" + "),
    compared: (limit: number | string) => (isExact ? limit : `greatest(${limit}, ${MAX_COMPARED})`),
  };
}

/** For each search, whether a product within the filters matches every word. */
export async function haveMatches(
  ctx: Context,
  caller: Caller,
  query: Filters,
  searches: SearchTerms[],
): Promise<boolean[]> {
  const possible = searches.filter(mayMatch);
  if (possible.length === 0) return searches.map(() => false);
  const where = await listConditions(ctx, caller, query);
  const { isForSale, from, filters } = sourceOf(where);
  const isHeld = (terms: SearchTerms) => {
    const requests = terms.map((term) => `${where.value(matchTerm(term))}::tsquery`);
    const clauses = [matchEach(requests), ...filters];
    // PostgreSQL plans a materialized subquery for all its rows, but reads one. Planned for one row, it would scan the table for it.
    const exists = (reach: string) =>
      `exists (with held as materialized (select from ${from} where ${[...clauses, reach].join(" and ")}) select from held)`;
    return isForSale ? REACHES.map((reach) => exists(`d.reach = ${reach}`)).join(" or ") : exists("true");
  };
  const text = `select array[${possible.map(isHeld).join(", ")}] as held`;
  const { rows } = await ctx.pool.query<{ held: boolean[] }>(text, where.values);
  const { held } = firstOf(rows);
  return searches.map((terms) => held[possible.indexOf(terms)] ?? false);
}

/** The filters that searches use most, so that these need no join. Of tags and ratings, documents have only what facets count. */
const onSearchDocuments = (clause: string) =>
  clause.replace(/^l\.(type|section|category|lang|currency|price_minor|compatibility) /, "d.$1 ");
