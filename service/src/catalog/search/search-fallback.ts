import type { Caller, Context } from "../../core/context.ts";
import { ANONYMOUS_CALLER, type Filters } from "./filters.ts";
import { haveMatches, type SearchRequest } from "./matches.ts";
import { correctSpelling, type SearchTerms } from "./search-terms.ts";

/** A search in the place of one that no product answers. */
export interface Fallback extends SearchRequest {
  /** Its words, where some were corrected. */
  correctedSearch?: string;
}

/**
 * For a search without a match: its corrected words, else any of its words. null where products hold every word and only
 * a facet's filter leaves them out: so a filter never changes what is searched for, and facets count what lists show.
 */
export async function findFallback(
  ctx: Context,
  caller: Caller,
  query: Filters,
  terms: SearchTerms,
): Promise<Fallback | null> {
  const scope = withoutFacetFilters(query);
  const [isAnswered, ...areWordsHeld] = await haveMatches(ctx, caller, scope, [terms, ...eachWord(terms)]);
  if (isAnswered) return null;
  const isForSale = await haveMatches(ctx, ANONYMOUS_CALLER, { minPrice: 0 }, eachWord(terms));
  const mistyped = terms.filter((_, at) => !areWordsHeld[at] && !isForSale[at]);
  const corrected = mistyped.length > 0 ? await correctSpelling(ctx.db, terms, mistyped) : null;
  if (!corrected) return anyOf(terms.filter((_, at) => areWordsHeld[at]));
  const [isCorrect, ...areHeldNow] = await haveMatches(ctx, caller, scope, [
    corrected,
    ...eachWord(corrected),
  ]);
  // A corrected word without a match in the scope keeps its original spelling.
  const words = terms.map((term, at) => (areHeldNow[at] ? (corrected[at] ?? term) : term));
  const correctedSearch = words.map(({ word }) => word).join(" ");
  const corrections = words.some((term, at) => term !== terms[at]) ? { correctedSearch } : {};
  if (isCorrect) return { terms: words, words: "every", ...corrections };
  const fallback = anyOf(words.filter((_, at) => areHeldNow[at]));
  return fallback && { ...fallback, ...corrections };
}

const anyOf = (terms: SearchTerms): Fallback | null =>
  terms.length > 0 ? { terms, words: terms.length > 1 ? "any" : "every" } : null;

const eachWord = (terms: SearchTerms): SearchTerms[] => terms.map((term) => [term]);

/** What is searched in: all filters that no facet counts by. */
const withoutFacetFilters = ({ search, author, status, lang, currency }: Filters): Filters => ({
  ...{ search, author, status, lang, currency },
  minPrice: 0,
});
