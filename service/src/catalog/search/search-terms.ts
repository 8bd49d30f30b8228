import { sql } from "kysely";
import { firstOf, ownValue } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";
import { prepared } from "../../platform/db/prepared.ts";
import { MIN_INDEXED_CHARACTERS, tokenize } from "./tokenizer.ts";

/** PostgreSQL keeps no position beyond this one. */
const MAX_POSITION = 16_383;
const MAX_SEARCH_WORDS = 12;
const MIN_PREFIX_CHARACTERS = 2;
const MAX_LEXEMES = 50;
/** PostgreSQL reads one posting list per lexeme, so the words of a search share this many. */
const MAX_LEXEMES_TOTAL = 100;
/** The last code point of Unicode. */
const LAST_CHARACTER = "\u{10FFFF}";
/** A shorter word has too many neighbors. */
const MIN_CORRECTED_CHARACTERS = 4;
const MAX_CORRECTIONS = 3;

/** The searchable parts of a product. A match in the title weighs most. */
export interface SearchableText {
  title: string;
  tags: string[];
  description: string;
  /** Weighs least, so that a seller's name does not outrank products about that word. */
  authorName: string;
}

const quote = (word: string) => `'${word.replaceAll("'", "''").replaceAll("\\", "\\\\")}'`;

/** The text of a `tsvector`: https://www.postgresql.org/docs/current/datatype-textsearch.html */
export function toTsVector({ title, tags, description, authorName }: SearchableText): string {
  let position = 0;
  const lexemes = (text: string, weight: "A" | "B" | "C" | "D") =>
    tokenize(text, "stored").map((word) => {
      position = Math.min(position + 1, MAX_POSITION);
      return `${quote(word)}:${position}${weight}`;
    });
  return [
    ...lexemes(title, "A"),
    ...lexemes(tags.join(" "), "B"),
    ...lexemes(description, "C"),
    ...lexemes(authorName, "D"),
  ].join(" ");
}

/** The seller's part of the tsvector. */
export const toAuthorTsVector = (authorName: string): string =>
  toTsVector({ title: "", tags: [], description: "", authorName });

/** PostgreSQL's Snowball stemmers by language. */
const STEMMERS: Record<string, string> = {
  ...{ ar: "arabic", ca: "catalan", da: "danish", de: "german", el: "greek", en: "english", es: "spanish" },
  ...{ et: "estonian", eu: "basque", fi: "finnish", fr: "french", ga: "irish", hi: "hindi", hu: "hungarian" },
  ...{ hy: "armenian", id: "indonesian", it: "italian", lt: "lithuanian", ne: "nepali", nl: "dutch" },
  ...{ no: "norwegian", pt: "portuguese", ro: "romanian", ru: "russian", sr: "serbian", sv: "swedish" },
  ...{ ta: "tamil", tr: "turkish", yi: "yiddish" },
};
function stemmerOf(lang = "en"): string | null {
  const [code = ""] = lang.split("-", 1);
  return ownValue(STEMMERS, code.toLowerCase()) ?? null;
}

/** One word of a search and the lexemes that match it. */
export interface SearchTerm {
  word: string;
  /** As stored: the word itself, words that begin with it or with its stem. */
  lexemes: string[];
  /** false: no listing has the word or one that begins with it. Words below the indexed length always may match. */
  mayMatch: boolean;
}
export type SearchTerms = SearchTerm[];

/** false: no product has every word, so that no index needs to be searched. */
export const mayMatch = (terms: SearchTerms): boolean => terms.every((term) => term.mayMatch);

/**
 * Parses the words of a search. Each word and its stem also match as prefixes, so that `writing` finds `writes`. A
 * prefix expands to its most frequent words, at most 50, because PostgreSQL intersects listed words much faster than it
 * scans prefixes. Stop words are omitted unless there are no others. The subselects hide values from the planner, as
 * `hideFromPlanner` does.
 */
export async function parseSearch(db: Queries, text: string, lang: string | undefined): Promise<SearchTerms> {
  const words = [...new Set(tokenize(text, "asked"))].slice(0, MAX_SEARCH_WORDS);
  if (words.length === 0) return [];
  const stemmer = stemmerOf(lang);
  const most = Math.min(MAX_LEXEMES, Math.floor(MAX_LEXEMES_TOTAL / words.length));
  const { rows } = await sql<{
    word: string;
    stems: string[] | null;
    known: string[] | null;
  }>`${prepared("parse_search")}
    with asked as (
      select word, at, ts_lexize(${`${stemmer ?? "simple"}${stemmer ? "_stem" : ""}`}::regdictionary, word) as stems
        from unnest((select ${words}::text[])) with ordinality as w (word, at))
    select a.word, a.stems, (
             select array_agg(k.word) from (
               select s.word, max(s.listings) as listings
                 from unnest(array[a.word] || a.stems) as b (beginning)
                 join search_words s on s.word ~>=~ b.beginning and s.word ~<~ (b.beginning || ${LAST_CHARACTER}::text)
                where length(b.beginning) >= ${MIN_PREFIX_CHARACTERS}
                group by s.word order by 2 desc, 1 limit (select ${most}::bigint)) k) as known
      from asked a order by a.at`.execute(db);
  const terms = rows.map(({ word, stems, known }) => ({
    word,
    isNoise: stems?.length === 0,
    lexemes: [...new Set([word, ...(known ?? [])])],
    mayMatch: known !== null || word.length < MIN_INDEXED_CHARACTERS,
  }));
  const significant = terms.filter(({ isNoise }) => !isNoise);
  return significant.length > 0 ? significant : terms;
}

/**
 * A `tsquery`: the lexemes of a word, quoted, so that no input is an operator. PostgreSQL evaluates an operator from the left, and
 * nests a chain of `|` to the left, hence the parentheses: the most frequent lexeme is tested first.
 */
export const matchTerm = ({ lexemes }: SearchTerm) =>
  `(${lexemes.map(quote).join(" | (")}${")".repeat(lexemes.length)}`;

/** A `tsquery`. */
export const matchAllTerms = (terms: SearchTerms): string => terms.map(matchTerm).join(" & ");

/** A `tsquery`. */
export const matchAnyTerm = (terms: SearchTerms): string => terms.map(matchTerm).join(" | ");

/** A `tsquery`: at least `count` words of the search. */
export const matchAtLeast = (terms: SearchTerms, count: number): string =>
  combinations(terms, count)
    .map((choice) => `(${matchAllTerms(choice)})`)
    .join(" | ");

function combinations(terms: SearchTerms, count: number): SearchTerms[] {
  if (count === 0) return [[]];
  return terms.flatMap((term, at) =>
    combinations(terms.slice(at + 1), count - 1).map((choice) => [term, ...choice]),
  );
}

/**
 * Replaces misspelled words by words of published products: at most one wrong letter in a short word, two in a longer
 * one. null: no word has a correction.
 */
export async function correctSpelling(
  db: Queries,
  terms: SearchTerms,
  mistyped: SearchTerms,
): Promise<SearchTerms | null> {
  const words = mistyped.map(({ word }) => word).filter((word) => word.length >= MIN_CORRECTED_CHARACTERS);
  if (words.length === 0) return null;
  const { rows } = await sql<{ term: string; meant: string[] }>`
    select w.word as term, array_agg(near.word order by near.place) as meant
      from unnest(${words}::text[]) as w (word)
     cross join lateral (
       select s.word, row_number() over (order by levenshtein(s.word, w.word), max(s.listings) desc, s.word) as place
         from search_words s
        where s.word % w.word and s.word <> w.word and s.listings > 0 and length(s.word) <= 60
          and levenshtein_less_equal(s.word, w.word, 2) <= case when length(w.word) < 6 then 1 else 2 end
        group by s.word order by 2 limit ${MAX_CORRECTIONS}) near
     group by w.word`.execute(db);
  if (rows.length === 0) return null;
  const corrections = new Map(rows.map((row) => [row.term, row.meant]));
  return terms.map((term) => {
    const lexemes = mistyped.includes(term) ? corrections.get(term.word) : undefined;
    return lexemes ? { word: firstOf(lexemes), lexemes, mayMatch: true } : term;
  });
}
