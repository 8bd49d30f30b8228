import type { Caller, Context } from "../../core/context.ts";
import { ANONYMOUS_CALLER, type Filters } from "./filters.ts";
import { haveMatches, type SearchRequest } from "./matches.ts";
import { correctSpelling, type SearchTerms } from "./search-terms.ts";

export interface Fallback extends SearchRequest {
  /** The corrected words, if any. */
  correctedSearch?: string;
}

/**
 * For a search without a match: its corrected words, else any of its words. null: products match every word, and only a
 * facet's filter excludes them. So a filter never changes the search, and facets count what lists show.
 */
export async function findFallback(
  ctx: Context,
  caller: Caller,
  query: Filters,
  terms: SearchTerms,
): Promise<Fallback | null> {
  const scope = withoutFacetFilters(query);
  const [isAnswered, ...areWordsFound] = await haveMatches(ctx, caller, scope, [terms, ...eachWord(terms)]);
  if (isAnswered) return null;
  const isForSale = await haveMatches(ctx, ANONYMOUS_CALLER, { minPrice: 0 }, eachWord(terms));
  const mistyped = terms.filter((_, at) => !areWordsFound[at] && !isForSale[at]);
  const corrected = mistyped.length > 0 ? await correctSpelling(ctx.db, terms, mistyped) : null;
  if (!corrected) return anyOf(terms.filter((_, at) => areWordsFound[at]));
  const [isCorrect, ...areFoundNow] = await haveMatches(ctx, caller, scope, [
    corrected,
    ...eachWord(corrected),
  ]);
  // A corrected word without a match in the scope keeps its original spelling.
  const words = terms.map((term, at) => (areFoundNow[at] ? (corrected[at] ?? term) : term));
  const correctedSearch = words.map(({ word }) => word).join(" ");
  const corrections = words.some((term, at) => term !== terms[at]) ? { correctedSearch } : {};
  if (isCorrect) return { terms: words, words: "every", ...corrections };
  const fallback = anyOf(words.filter((_, at) => areFoundNow[at]));
  return fallback && { ...fallback, ...corrections };
}

const anyOf = (terms: SearchTerms): Fallback | null =>
  terms.length > 0 ? { terms, words: terms.length > 1 ? "any" : "every" } : null;

const eachWord = (terms: SearchTerms): SearchTerms[] => terms.map((term) => [term]);

/** All filters without a facet. */
const withoutFacetFilters = ({ search, author, status, lang, currency }: Filters): Filters => ({
  ...{ search, author, status, lang, currency },
  minPrice: 0,
});
