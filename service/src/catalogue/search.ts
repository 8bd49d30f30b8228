import { sql } from "kysely";
import type { Queries } from "../db/database.ts";
import { wordsOf } from "./words.ts";

/** PostgreSQL keeps no position beyond this one. */
const MAX_POSITION = 16_383;
const MAX_ASKED_WORDS = 12;
const MIN_STEM_CHARACTERS = 3;
/** A shorter word has too many neighbours to guess from. */
const MIN_GUESSED_CHARACTERS = 4;
const GUESSES = 3;

/** The parts of a product that are searched, with the weights of PostgreSQL: a match in the title counts most. */
export interface Searched {
  title: string;
  tags: string[];
  description: string;
}

const quote = (word: string) => `'${word.replaceAll("'", "''").replaceAll("\\", "\\\\")}'`;

/** The text of a `tsvector`: https://www.postgresql.org/docs/current/datatype-textsearch.html */
export function toVector({ title, tags, description }: Searched): string {
  let position = 0;
  const lexemes = (text: string, weight: "A" | "B" | "C") =>
    wordsOf(text, "stored").map((word) => {
      position = Math.min(position + 1, MAX_POSITION);
      return `${quote(word)}:${position}${weight}`;
    });
  return [...lexemes(title, "A"), ...lexemes(tags.join(" "), "B"), ...lexemes(description, "C")].join(" ");
}

/** Snowball stemmers that come with PostgreSQL, by language. */
const STEMMERS: Record<string, string> = {
  ...{ ar: "arabic", ca: "catalan", da: "danish", de: "german", el: "greek", en: "english", es: "spanish" },
  ...{ et: "estonian", eu: "basque", fi: "finnish", fr: "french", ga: "irish", hi: "hindi", hu: "hungarian" },
  ...{ hy: "armenian", id: "indonesian", it: "italian", lt: "lithuanian", ne: "nepali", nl: "dutch" },
  ...{ no: "norwegian", pt: "portuguese", ro: "romanian", ru: "russian", sr: "serbian", sv: "swedish" },
  ...{ ta: "tamil", tr: "turkish", yi: "yiddish" },
};
const stemmerOf = (lang: string | undefined) => STEMMERS[lang?.split("-")[0]?.toLowerCase() ?? "en"] ?? null;

/** Each word of a question with what else may stand for it. */
export type Question = { word: string; also: string[] }[];

/**
 * What is asked for, word by word. A stem is looked for beside its word, so that `writing` finds `writes`; stored words
 * need none, since each word of a question is a prefix. Words that a language counts as noise are left out, unless
 * there are no others.
 */
export async function toQuestion(db: Queries, text: string, lang: string | undefined): Promise<Question> {
  const words = [...new Set(wordsOf(text, "asked"))].slice(0, MAX_ASKED_WORDS);
  const stemmer = stemmerOf(lang);
  if (!stemmer || words.length === 0) return words.map((word) => ({ word, also: [] }));
  const { rows } = await sql<{ stems: string[] | null }>`
    select ts_lexize(${`${stemmer}_stem`}::regdictionary, word) as stems
      from unnest(${words}::text[]) with ordinality as w (word, at) order by at`.execute(db);
  const asked = words.map((word, at) => ({
    word,
    noise: rows[at]!.stems?.length === 0,
    also: (rows[at]!.stems ?? []).filter(
      (stem) => stem.length >= MIN_STEM_CHARACTERS && !stem.startsWith(word),
    ),
  }));
  const telling = asked.filter(({ noise }) => !noise);
  return telling.length > 0 ? telling : asked;
}

/** The text of a `tsquery`: every word, each as a prefix. Lexemes are quoted, so that no input is an operator. */
export const toTsQuery = (question: Question): string =>
  question
    .map(({ word, also }) => `(${[word, ...also].map((one) => `${quote(one)}:*`).join(" | ")})`)
    .join(" & ");

/**
 * The question with what its words may have been meant to be, by the words that listings hold: at most one wrong
 * letter in a short word, two in a longer one. null when nothing comes to mind.
 */
export async function guess(db: Queries, question: Question): Promise<Question | null> {
  const words = question.map(({ word }) => word).filter((word) => word.length >= MIN_GUESSED_CHARACTERS);
  if (words.length === 0) return null;
  const { rows } = await sql<{ asked: string; meant: string[] }>`
    select w.word as asked, array_agg(near.word order by near.place) as meant
      from unnest(${words}::text[]) as w (word)
     cross join lateral (
       select s.word, row_number() over (order by levenshtein(s.word, w.word), s.listings desc, s.word) as place
         from search_words s
        where s.word % w.word and s.word <> w.word and length(s.word) <= 60
          and levenshtein_less_equal(s.word, w.word, 2) <= case when length(w.word) < 6 then 1 else 2 end
        order by 2 limit ${GUESSES}) near
     group by w.word`.execute(db);
  if (rows.length === 0) return null;
  const meant = new Map(rows.map((row) => [row.asked, row.meant]));
  return question.map(({ word, also }) => {
    const [first, ...others] = meant.get(word) ?? [];
    return first === undefined ? { word, also } : { word: first, also: others };
  });
}
