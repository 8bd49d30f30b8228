import { distance } from "fastest-levenshtein";
import { hashText } from "./minhash.ts";
import { normalizeText } from "./text-similarity.ts";

/** Titles of at least this length may differ by two edits, shorter ones by one, and the shortest by none. */
const TWO_EDITS = 8;
const ONE_EDIT = 4;

/** Letters and digits without accents: "Résumé-Builder" and "resume builder" are the same. */
const lettersOf = (title: string): string[] => [
  ...normalizeText(title)
    .normalize("NFD")
    .replace(/[^\p{L}\p{N}]/gu, ""),
];

const allowedEdits = (length: number): number => (length >= TWO_EDITS ? 2 : length >= ONE_EDIT ? 1 : 0);

/**
 * A title is cut into one part more than it may have edits, so that a look-alike has at least one part unchanged (pigeonhole principle; Li,
 * Deng, Feng: Pass-Join, VLDB 2011). A key names the length of the title, the number of the part and its text.
 */
export function titleKeys(title: string): number[] {
  const letters = lettersOf(title);
  return partsOf(letters.length).map(([from, to], part) => keyOf(letters.length, part, letters, from, to));
}

/** The keys of all titles that are within the allowed edits of this one. */
export function lookAlikeKeys(title: string): number[] {
  const letters = lettersOf(title);
  const own = allowedEdits(letters.length);
  const keys = new Set<number>();
  for (let length = Math.max(1, letters.length - own); length <= letters.length + own; length++) {
    const shift = Math.min(own, allowedEdits(length));
    for (const [part, [from, to]] of partsOf(length).entries())
      for (let at = Math.max(0, from - shift); at <= from + shift && at + to - from <= letters.length; at++)
        keys.add(keyOf(length, part, letters, at, at + to - from));
  }
  return [...keys];
}

/** Where the parts of a title of this length begin and end. */
function partsOf(length: number): [number, number][] {
  const parts = allowedEdits(length) + 1;
  if (length === 0) return [];
  return Array.from({ length: parts }, (_, part) => [
    Math.floor((part * length) / parts),
    Math.floor(((part + 1) * length) / parts),
  ]);
}

const keyOf = (length: number, part: number, letters: string[], from: number, to: number): number =>
  hashText(`${length}:${part}:${letters.slice(from, to).join("")}`) | 0;

export function isLookAlike(title: string, other: string): boolean {
  const [a, b] = [lettersOf(title), lettersOf(other)];
  const edits = Math.min(allowedEdits(a.length), allowedEdits(b.length));
  return a.length > 0 && b.length > 0 && distance(a.join(""), b.join("")) <= edits;
}
