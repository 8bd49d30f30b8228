/** Ignores case and accents. Stored and searched texts both use it. */
export function normalizeText(text: string): string {
  return text
    .normalize("NFKD")
    .toLowerCase()
    .replace(ACCENTS, "")
    .normalize("NFC")
    .replace(LETTERS, (letter) => PLAIN_LETTERS[letter] ?? letter);
}

/** Accents of Latin, Greek, Cyrillic and Arabic. Marks of Thai or Devanagari are vowels and stay. */
const ACCENTS = /[\u0300-\u036f\u064b-\u0652\u0670\u0640]/g;
/** Letters without a Unicode decomposition. */
const PLAIN_LETTERS: Record<string, string> = {
  ...{ ł: "l", ø: "o", đ: "d", ħ: "h", ı: "i", ß: "ss", æ: "ae", œ: "oe", þ: "th", ð: "d", ς: "σ" },
  ...{ أ: "ا", إ: "ا", آ: "ا", ى: "ي", ة: "ه" },
};
const LETTERS = new RegExp(`[${Object.keys(PLAIN_LETTERS).join("")}]`, "g");

const LETTER_RUN = /[\p{L}\p{N}\p{M}]+/gu;
const MAX_WORD_CHARACTERS = 60;
/** `search_words` has no shorter ones: most are parts of words in scripts without spaces. */
export const MIN_INDEXED_CHARACTERS = 3;
/** Without half of a surrogate pair, which PostgreSQL refuses in JSON. */
const cut = (word: string) => word.slice(0, MAX_WORD_CHARACTERS).toWellFormed();
/** Han and Kana have no spaces: single characters and pairs of neighbors serve as words. */
const CJK_RUN = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]+/u;
/** Scripts whose word boundaries need a dictionary. */
const UNSPACED_SCRIPT = /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
const segmenter = new Intl.Segmenter("th", { granularity: "word" });

type TokenUse = "stored" | "asked";

function pairs(run: string, use: TokenUse): string[] {
  const characters = Array.from(run);
  const neighbours = characters.slice(1).map((character, at) => `${characters[at]}${character}`);
  if (use === "asked" && neighbours.length > 0) return neighbours;
  return [...characters, ...neighbours];
}

function splitRun(run: string, use: TokenUse): string[] {
  if (UNSPACED_SCRIPT.test(run)) return [...segmenter.segment(run)].map(({ segment }) => cut(segment));
  if (!CJK_RUN.test(run)) return [cut(run)];
  return run
    .split(/([\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]+)/u)
    .filter((part) => part !== "")
    .flatMap((part) => (CJK_RUN.test(part) ? pairs(part, use) : [cut(part)]));
}

/** In order, normalized. */
export const tokenize = (text: string, use: TokenUse): string[] =>
  (normalizeText(text).match(LETTER_RUN) ?? []).flatMap((run) => splitRun(run, use));
