const WORDS = 3;

/** Runs of three words; a shorter text is one run. */
function shinglesOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  if (words.length < WORDS) return new Set(words.length === 0 ? [] : [words.join(" ")]);
  return new Set(words.slice(WORDS - 1).map((_, at) => words.slice(at, at + WORDS).join(" ")));
}

/** The part of the runs of three words that two texts have in common: 0 to 1. */
export function createTextComparison(text: string): (other: string) => number {
  const own = shinglesOf(text);
  return (other) => {
    const others = shinglesOf(other);
    const shared = [...others].filter((run) => own.has(run)).length;
    const all = own.size + others.size - shared;
    return all === 0 ? 0 : shared / all;
  };
}
