import type { Random } from "@stoa/service/backoffice/demo/seeded-random.ts";
import { normalizeText, tokenize } from "@stoa/service/catalog/search/tokenizer.ts";
import type pg from "pg";

/** Words and values of the shop, for queries. */
export interface QueryTerms {
  published: number;
  /** Largest first. */
  categories: { slug: string; products: number }[];
  tags: string[];
  common: string[];
  rare: string[];
  mistyped: string[];
  beginnings: string[];
  pairs: string[];
  products: string[];
}

/** Per kind: enough for a warm-up and two measurements. */
export const QUESTIONS = 900;
const RARE_LISTINGS = 10;
const COMMON_PART = { from: 0.02, to: 0.3 };
const COMMON_WORDS = 60;
const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export async function readQueryTerms(pool: pg.Pool, random: Random): Promise<QueryTerms> {
  const { rows: categories } = await pool.query<{ slug: string; products: number }>(
    `select category as slug, count(*)::int as products from listings where status = 'published'
      group by category order by 2 desc, 1`,
  );
  const published = categories.reduce((sum, { products }) => sum + products, 0);
  const words = (clause: string, limit: number, values: unknown[]) =>
    column(
      pool,
      `select word from bench.words
        where word ~ '^[a-z]+$' and ts_lexize('english_stem', word) <> '{}' and ${clause}
        order by hashtext(word), word limit ${limit}`,
      values,
    );
  const known = await words("length(word) between 6 and 10 and listings > 2", QUESTIONS * 2, []);
  const texts = await column(
    pool,
    `select title || ' ' || description from products where status = 'published' and lang = 'en'
      order by hashtext(id::text), id limit ${QUESTIONS * 2}`,
  );
  return {
    published,
    categories,
    tags: await column(
      pool,
      `select tag from (select unnest(tags) as tag from listings limit 100000) t group by tag
        order by count(*) desc, tag limit 100`,
    ),
    common: await words("length(word) >= 4 and listings between $1 and $2", COMMON_WORDS, [
      Math.round(published * COMMON_PART.from),
      Math.round(published * COMMON_PART.to),
    ]),
    // A short stem matches many other words.
    rare: await words(
      `length((ts_lexize('english_stem', word))[1]) >= 5 and listings <= ${RARE_LISTINGS}`,
      QUESTIONS,
      [],
    ),
    mistyped: await unknownOf(pool, [...new Set(known.map((word) => mistype(random, word)))]),
    beginnings: await column(
      pool,
      `select left(word, 3 + abs(hashtext(word)) % 3) from bench.words
        where word ~ '^[a-z]{6,}$' and listings > 2
        group by 1 order by hashtext(left(word, 3 + abs(hashtext(word)) % 3)) limit ${QUESTIONS}`,
    ),
    pairs: [...new Set(texts.flatMap((text) => pairOf(random, text)))],
    products: await column(
      pool,
      `select product_id::text from listings where status = 'published'
        order by hashtext(product_id::text || 'detail'), 1 limit ${QUESTIONS}`,
    ),
  };
}

/** One wrong, missing or additional letter after the first. */
function mistype(random: Random, word: string): string {
  const at = random.integer(1, word.length - 2);
  const [before, after] = [word.slice(0, at), word.slice(at)];
  const letter = random.pick([...LETTERS]);
  return random.pick([before + after.slice(1), before + letter + after, before + letter + after.slice(1)]);
}

/** Words that no listing has, not even as a prefix. */
const unknownOf = (pool: pg.Pool, words: string[]) =>
  column(
    pool,
    `select w.word from unnest($1::text[]) with ordinality as w (word, at)
      where not exists (select 1 from search_words s where s.word ~>=~ w.word and s.word ~<~ (w.word || 'zzz'))
      order by at limit ${QUESTIONS}`,
    [words],
  );

/** Two significant words of one product. */
function pairOf(random: Random, text: string): string[] {
  const words = [...new Set(tokenize(normalizeText(text), "stored"))].filter((word) =>
    /^[a-z]{5,}$/.test(word),
  );
  if (words.length < 2) return [];
  const first = random.pick(words);
  const second = random.pick(words.filter((word) => word !== first));
  return [`${first} ${second}`];
}

const column = async (pool: pg.Pool, query: string, values: unknown[] = []): Promise<string[]> => {
  const { rows } = await pool.query<string[]>({ text: query, values, rowMode: "array" });
  return rows.map(([value]) => value!);
};
