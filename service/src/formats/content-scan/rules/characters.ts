import type { ScanSeverity } from "@stoa/contract";
import { INVISIBLE_IN_TEXT } from "@stoa/contract/invisible-characters";
import { isLookalike, toLatin } from "../confusables.ts";
import type { Match } from "../finding.ts";
import { isPlainText } from "../plain-text.ts";

const HIDDEN =
  "are characters that buyers do not see and models read. Remove them, or write what they stand for in plain text";
const BIDIRECTIONAL =
  "changes the order in which a text is shown, so that people read something else than models. Remove it";
const CONFUSABLE =
  "mixes letters of several scripts that look alike, by which a name or a rule can be forged. Write it with the letters of one script";
const STYLED = "is written with styled letters instead of plain ones. Write it in plain letters";

const BIDIRECTIONAL_MARK = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
/** They only hint at a direction; texts in Arabic and Hebrew have them. */
const HARMLESS_MARK = /[\u061c\u200e\u200f]/u;
/** Flags of regions: a black flag, up to six tag letters and the end mark. */
const FLAG = /\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{2,6}\u{e007f}/gu;
const BLACK_FLAG = "\u{1f3f4}";
const TAG = /[\u{e0000}-\u{e007f}]/u;
/** Programs separate lines and records by them; the other ones of C1 are left from a wrong character set. */
const isSeparator = (character: string): boolean => {
  const code = character.codePointAt(0) ?? 0;
  return (
    /[\p{Zl}\p{Zp}]/u.test(character) || (code >= 0x1c && code <= 0x1f) || (code >= 0x80 && code <= 0x9f)
  );
};
const LETTER_OR_SPACE = /[\p{L}\p{N}]/u;
const MIN_RUN = 3;
const MAX_SHOWN = 4;
const MAX_MATCHES = 20;

export const findCharacters = (text: string): Match[] =>
  isPlainText(text) ? [] : [...findHidden(text), ...findBidirectional(text), ...findConfusables(text)];

/** Names the characters, since an excerpt would not show them. */
export const nameCharacters = (text: string): string => {
  const names = [...text].map(
    (character) => `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`,
  );
  const more = names.length - MAX_SHOWN;
  return names.slice(0, MAX_SHOWN).join(" ") + (more > 0 ? ` and ${more} more` : "");
};

interface Run {
  text: string;
  from: number;
  to: number;
}

function findHidden(text: string): Match[] {
  const flags = new Set<number>();
  if (text.includes(BLACK_FLAG))
    for (const { index, 0: flag } of text.matchAll(FLAG))
      for (let at = index; at < index + flag.length; at++) flags.add(at);
  const runs: Run[] = [];
  for (const { index, 0: character } of text.matchAll(INVISIBLE_IN_TEXT)) {
    if (flags.has(index) || character === "\r") continue;
    if (character.search(BIDIRECTIONAL_MARK) !== -1) continue;
    const last = runs.at(-1);
    if (last && last.to === index) {
      last.text += character;
      last.to += character.length;
    } else if (runs.length < MAX_MATCHES)
      runs.push({ text: character, from: index, to: index + character.length });
  }
  return runs.map(({ text: hidden, from, to }) => ({
    kind: "hidden-characters",
    severity: hiddenSeverity(text, { text: hidden, from, to }, runs.length),
    from,
    to,
    excerpt: nameCharacters(hidden),
    reason: HIDDEN,
  }));
}

/** A lone one may be left from a copy; a run can carry a text, and one inside a word hides the word from filters. */
function hiddenSeverity(whole: string, { text, from, to }: Run, runs: number): ScanSeverity {
  if ([...text].every(isSeparator)) return "info";
  if ([...text].length >= MIN_RUN || TAG.test(text)) return "high";
  const isInWord =
    LETTER_OR_SPACE.test(whole[from - 1] ?? "") &&
    LETTER_OR_SPACE.test(whole[to] ?? "") &&
    /[a-z]/i.test(whole[from - 1] ?? "");
  if (isInWord && text !== "\u00ad") return "medium";
  return runs >= MIN_RUN ? "medium" : "info";
}

function findBidirectional(text: string): Match[] {
  const matches: Match[] = [];
  for (const { index, 0: mark } of text.matchAll(BIDIRECTIONAL_MARK)) {
    if (matches.length === MAX_MATCHES) break;
    matches.push({
      kind: "bidirectional-characters",
      severity: HARMLESS_MARK.test(mark) ? "info" : "high",
      from: index,
      to: index + mark.length,
      excerpt: nameCharacters(mark),
      reason: BIDIRECTIONAL,
    });
  }
  return matches;
}

const WORD = /[\p{L}\p{M}\p{N}]{2,}/uy;
const NOT_ASCII = /[^\p{ASCII}]/u;
const NOT_ASCII_LETTER = /(?!\p{ASCII})[\p{L}\p{M}\p{N}]/gu;
const ASCII_LETTER = /[A-Za-z0-9]/;
const STYLED_LETTER = /[\u{1d400}-\u{1d7ff}\u24b6-\u24e9\uff21-\uff3a\uff41-\uff5a\u{1f130}-\u{1f189}]/u;
const STYLED_RUN =
  /(?:[\u{1d400}-\u{1d7ff}\u24b6-\u24e9\uff21-\uff3a\uff41-\uff5a\u{1f130}-\u{1f189}]\s?){4,200}/gu;
const MIN_LETTERS = 3;

function findConfusables(text: string): Match[] {
  const words = findForeignWords(text);
  const isForeign = words.some(
    ({ word }) =>
      /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}]/u.test(word) && NOT_ASCII.test(toLatin(word)),
  );
  const matches: Match[] = [];
  for (const { index, word } of words) {
    if (matches.length === MAX_MATCHES) break;
    const severity = confusableSeverity(word, isForeign);
    if (severity)
      matches.push({
        kind: "confusable-characters",
        severity,
        from: index,
        to: index + word.length,
        excerpt: `${word} with ${nameCharacters(word.replace(/\p{ASCII}/gu, ""))}`,
        reason: CONFUSABLE,
      });
  }
  for (const { index, 0: run } of text.matchAll(STYLED_RUN)) {
    if (matches.length === MAX_MATCHES) break;
    matches.push({
      kind: "confusable-characters",
      severity: "info",
      from: index,
      to: index + run.length,
      reason: STYLED,
    });
  }
  return matches;
}

interface PlacedWord {
  index: number;
  word: string;
}

/** The words with characters beside ASCII. Most words of most texts have none, so it goes from one such character to the next. */
function findForeignWords(text: string): PlacedWord[] {
  const words: PlacedWord[] = [];
  let end = 0;
  NOT_ASCII_LETTER.lastIndex = 0;
  for (let found = NOT_ASCII_LETTER.exec(text); found; found = NOT_ASCII_LETTER.exec(text)) {
    let index = found.index;
    while (index > end && ASCII_LETTER.test(text[index - 1] ?? "")) index--;
    WORD.lastIndex = index;
    const [word] = WORD.exec(text) ?? [];
    if (word) words.push({ index, word });
    end = word ? WORD.lastIndex : NOT_ASCII_LETTER.lastIndex;
    NOT_ASCII_LETTER.lastIndex = end;
  }
  return words;
}

/** null: a word of one script, or of a text that is written in that script. */
function confusableSeverity(word: string, isForeign: boolean): ScanSeverity | null {
  if (STYLED_LETTER.test(word) || NOT_ASCII.test(toLatin(word))) return null;
  const letters = [...word];
  const foreign = letters.filter(isLookalike).length;
  const latin = letters.filter((letter) => /[A-Za-z]/.test(letter)).length;
  if (latin > 0 && letters.length >= MIN_LETTERS)
    return foreign === 1 && isForeign && latin === 1 ? null : "high";
  return !isForeign && foreign === letters.length && letters.length >= MIN_LETTERS ? "medium" : null;
}
