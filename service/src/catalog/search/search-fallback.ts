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
 * For a question without a match: its words corrected, else any of them. null where products hold every word and only
 * a facet's filter leaves them out: so a filter never changes what is searched for, and facets count what lists show.
 */
export async function findFallback(
  ctx: Context,
  caller: Caller,
  query: Filters,
  question: SearchTerms,
): Promise<Fallback | null> {
  const scope = withoutFacetFilters(query);
  const [isAnswered, ...areWordsHeld] = await haveMatches(ctx, caller, scope, [
    question,
    ...eachWord(question),
  ]);
  if (isAnswered) return null;
  const isForSale = await haveMatches(ctx, ANONYMOUS_CALLER, { minPrice: 0 }, eachWord(question));
  const mistyped = question.filter((_, at) => !areWordsHeld[at] && !isForSale[at]);
  const corrected = mistyped.length > 0 ? await correctSpelling(ctx.db, question, mistyped) : null;
  if (!corrected) return anyOf(question.filter((_, at) => areWordsHeld[at]));
  const [isCorrect, ...areHeldNow] = await haveMatches(ctx, caller, scope, [
    corrected,
    ...eachWord(corrected),
  ]);
  // What nothing in the scope holds was corrected in vain.
  const words = question.map((asked, at) => (areHeldNow[at] ? corrected[at]! : asked));
  const correctedSearch = words.map(({ word }) => word).join(" ");
  const said = words.some((asked, at) => asked !== question[at]) ? { correctedSearch } : {};
  if (isCorrect) return { terms: words, words: "every", ...said };
  const fallback = anyOf(words.filter((_, at) => areHeldNow[at]));
  return fallback && { ...fallback, ...said };
}

const anyOf = (question: SearchTerms): Fallback | null =>
  question.length > 0 ? { terms: question, words: question.length > 1 ? "any" : "every" } : null;

const eachWord = (question: SearchTerms): SearchTerms[] => question.map((asked) => [asked]);

/** What is searched in: all filters that no facet counts by. */
const withoutFacetFilters = ({ search, author, status, lang, currency }: Filters): Filters => ({
  ...{ search, author, status, lang, currency },
  minPrice: 0,
});
