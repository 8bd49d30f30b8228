import type { Caller, Context } from "../../core/context.ts";
import { ANYBODY, type Filters } from "./filters.ts";
import { areHeld, type Search } from "./matches.ts";
import { correctWords, type Question } from "./search.ts";

/** A search in the place of one that no product answers. */
export interface Fallback extends Search {
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
  question: Question,
): Promise<Fallback | null> {
  const scope = withoutFacets(query);
  const [isAnswered, ...areWordsHeld] = await areHeld(ctx, caller, scope, [question, ...eachWord(question)]);
  if (isAnswered) return null;
  const isForSale = await areHeld(ctx, ANYBODY, { minPrice: 0 }, eachWord(question));
  const mistyped = question.filter((_, at) => !areWordsHeld[at] && !isForSale[at]);
  const corrected = mistyped.length > 0 ? await correctWords(ctx.db, question, mistyped) : null;
  if (!corrected) return anyOf(question.filter((_, at) => areWordsHeld[at]));
  const [isCorrect, ...areHeldNow] = await areHeld(ctx, caller, scope, [corrected, ...eachWord(corrected)]);
  // What nothing in the scope holds was corrected in vain.
  const words = question.map((asked, at) => (areHeldNow[at] ? corrected[at]! : asked));
  const correctedSearch = words.map(({ word }) => word).join(" ");
  const said = words.some((asked, at) => asked !== question[at]) ? { correctedSearch } : {};
  if (isCorrect) return { question: words, words: "every", ...said };
  const fallback = anyOf(words.filter((_, at) => areHeldNow[at]));
  return fallback && { ...fallback, ...said };
}

const anyOf = (question: Question): Fallback | null =>
  question.length > 0 ? { question, words: question.length > 1 ? "any" : "every" } : null;

const eachWord = (question: Question): Question[] => question.map((asked) => [asked]);

/** What is searched in: all filters that no facet counts by. */
const withoutFacets = ({ search, author, status, lang, currency }: Filters): Filters => ({
  ...{ search, author, status, lang, currency },
  minPrice: 0,
});
