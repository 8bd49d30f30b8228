const WORDS = 3;

/** Scripts without spaces between words: each character counts as a word. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}])[\p{L}\p{N}\p{M}])+/gu;

/** Without differences that a reader does not see: case, width, and characters that are not shown. */
export const normalizeText = (text: string): string =>
  text
    .normalize("NFKC")
    .replace(/\p{Default_Ignorable_Code_Point}/gu, "")
    .toLowerCase();

/** Runs of three words; a shorter text is one run. */
export function shinglesOf(text: string): Set<string> {
  const words = normalizeText(text).match(WORD) ?? [];
  if (words.length < WORDS) return new Set(words.length === 0 ? [] : [words.join(" ")]);
  return new Set(words.slice(WORDS - 1).map((_, at) => words.slice(at, at + WORDS).join(" ")));
}

/** The Jaccard index of the runs of three words of two texts: 0 to 1. */
export function createTextComparison(text: string): (other: string) => number {
  const own = shinglesOf(text);
  return (other) => {
    const others = shinglesOf(other);
    const shared = [...others].filter((run) => own.has(run)).length;
    const all = own.size + others.size - shared;
    return all === 0 ? 0 : shared / all;
  };
}
