import type { Caller, Context } from "../../core/context.ts";
import { firstOf } from "../../core/required.ts";
import { type Filters, listConditions, PUBLISHED } from "./filters.ts";
import { matchAllTerms, matchAnyTerm, matchAtLeast, type SearchTerms } from "./search-terms.ts";

/** `search_documents.reach`, from what was bought most to what never was: 0015_listings.sql. */
const REACHES = [8, 7, 6, 5, 4, 3, 2, 1, 0];

/** Of more words there are too many choices to look for each number of them: they are looked for all, by two and by one. */
const MAX_EXACT_WORDS = 5;
/** Of more words so many of the most bought are compared by how many they hold. */
const MAX_COMPARED = 1_000;

/** What a product must hold. */
export interface SearchRequest {
  terms: SearchTerms;
  words: "every" | "any";
}

/** What a search finds, as SQL that others sort, count or cut. */
export interface Matches {
  values: unknown[];
  /** Those of `mostBought` and `wordsHeld`. */
  rankedValues: unknown[];
  /** `tsquery` of what is asked. */
  tsQuery: string;
  /** How many words a row `m` holds; null where all hold every word. */
  matchedWords: string | null;
  /** Whether nothing but the words decides, so that one plan fits all values. */
  isWordsOnly: boolean;
  /** Rows of product_id, purchases and search, at least `limit` if there are: those with most words, of these the most bought. */
  mostBought(limit: number): string;
  /** At most `limit` of these rows in no order, which is cheaper. */
  any(limit: number): string;
  /** All matches, as a source of `l.*` that has no index of its own: for an order that is walked. */
  all: string;
}

/**
 * Finds by words first. Of what is for sale each reach has an index of words, and one is only looked into when those
 * above it had too few: a common word costs what is wanted of it, not what there is. Within a reach the order is that of
 * an expression, so that PostgreSQL sorts what the index of words found, and walks no order past what does not match.
 */
export async function buildMatches(
  ctx: Context,
  caller: Caller,
  query: Filters,
  { terms, words }: SearchRequest,
): Promise<Matches> {
  const where = await listConditions(ctx, caller, query);
  const tsQuery = (text: string) => `${where.value(text)}::tsquery`;
  const request = tsQuery(words === "every" ? matchAllTerms(terms) : matchAnyTerm(terms));
  const matching = `d.search @@ ${request}`;
  const isForSale = where.clauses.includes(PUBLISHED);
  // What has a reach is published.
  const filters = where.clauses.filter((clause) => clause !== PUBLISHED).map(onSearchDocuments);
  const byWordsAlone = isForSale && !filters.some((clause) => clause.startsWith("l."));
  const from = `search_documents d ${byWordsAlone ? "" : "join listings l on l.product_id = d.product_id"}`;
  const inTurn = (matching: string, order: string) => {
    const select = `select d.product_id, d.purchases, d.search from ${from} where ${[matching, ...filters].join(" and ")}`;
    return isForSale
      ? REACHES.map((reach) => `(${select} and d.reach = ${reach} ${order})`).join(" union all ")
      : `(${select} ${order})`;
  };
  // Offset 0 keeps the limit outside: inside, it would talk PostgreSQL into reading the table until it has enough.
  const first = (rows: string, limit: number) => `select * from (${rows}) matching limit ${limit}`;
  const mostBoughtOf = (matching: string) =>
    inTurn(matching, "order by d.purchases + 0 desc, d.product_id desc");
  // PostgreSQL refuses values that a statement does not speak of.
  const values = [...where.values];
  const byNumber = words === "any" ? stepsByWordCount(terms, tsQuery) : null;
  return {
    values,
    rankedValues: where.values,
    tsQuery: request,
    matchedWords: byNumber?.wordsHeld ?? null,
    isWordsOnly: byWordsAlone && !byNumber,
    mostBought: (limit) =>
      byNumber
        ? first(byNumber.steps.map(mostBoughtOf).join(" union all "), byNumber.compared(limit))
        : first(mostBoughtOf(matching), limit),
    any: (limit) => first(inTurn(matching, "offset 0"), limit),
    all: `(select l.* from listings l join search_documents d on d.product_id = l.product_id
            where ${[matching, ...where.clauses].join(" and ")}) l`,
  };
}

/** Conditions from most matched terms to fewest; no row fits two of them. */
function stepsByWordCount(terms: SearchTerms, tsQuery: (text: string) => string) {
  const isExact = terms.length <= MAX_EXACT_WORDS;
  const most = terms.length;
  const counts = isExact ? terms.map((_, at) => most - at) : [most, 2, 1];
  const steps = counts.map((count) => `d.search @@ ${tsQuery(matchAtLeast(terms, count))}`);
  const held = terms.map((term) => `(m.search @@ ${tsQuery(matchAllTerms([term]))})::int`);
  return {
    steps: steps.map((step, at) => (at === 0 ? step : `${step} and not ${steps[at - 1]}`)),
    wordsHeld: held.join(" + "),
    compared: (limit: number) => (isExact ? limit : Math.max(limit, MAX_COMPARED)),
  };
}

/** For each search, whether a product that fits the filters holds every term. */
export async function haveMatches(
  ctx: Context,
  caller: Caller,
  query: Filters,
  questions: SearchTerms[],
): Promise<boolean[]> {
  const where = await listConditions(ctx, caller, query);
  const isForSale = where.clauses.includes(PUBLISHED);
  const from = "search_documents d join listings l on l.product_id = d.product_id";
  const isHeld = (terms: SearchTerms) => {
    const clauses = [`d.search @@ ${where.value(matchAllTerms(terms))}::tsquery`, ...where.clauses];
    const exists = (reach: string) =>
      `exists (select from ${from} where ${[...clauses, reach].join(" and ")})`;
    return isForSale ? REACHES.map((reach) => exists(`d.reach = ${reach}`)).join(" or ") : exists("true");
  };
  const text = `select array[${questions.map(isHeld).join(", ")}] as held`;
  const { rows } = await ctx.pool.query<{ held: boolean[] }>(text, where.values);
  return firstOf(rows).held;
}

/** The category stands beside the words, too: a search in one needs no listings. */
const onSearchDocuments = (clause: string) => clause.replace(/^l\.(section|category) /, "d.$1 ");
