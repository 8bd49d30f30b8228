/** A word of a text, in lower case without accents and apostrophes. */
export interface Word {
  text: string;
  from: number;
  to: number;
  /** Words of one sentence have the same number. */
  sentence: number;
  /** Joined from single letters. */
  isSpaced?: true;
}

const WORD = /[\p{L}\p{N}@$][\p{L}\p{M}\p{N}@$'’]*/gu;
const SENTENCE_END = /[.!?;。！？]["'”’)\]]*\s|\n\s*\n|\n\s*(?:[-*•+]|\d+[.)])\s|[。！？]/u;
/** Counts as a word: "if it is not there, tell the user" has no order to be silent. */
const PAUSE = /[,:|()—–]/;
const MAX_SPACED_GAP = 2;
const MIN_SPACED_LETTERS = 5;

const SPACE = 0x20;
const NOT_ASCII = 0x80;
const isAsciiWord = (expression: RegExp): boolean[] =>
  Array.from({ length: NOT_ASCII }, (_, code) => expression.test(String.fromCharCode(code)));
const BEGINS_WORD = isAsciiWord(/[a-z0-9@$]/i);
const CONTINUES_WORD = isAsciiWord(/[a-z0-9@$']/i);

const foldWord = (word: string): string =>
  word
    .toLowerCase()
    .normalize("NFD")
    .replace(/[\p{M}'’]/gu, "");

const foldAsciiWord = (word: string): string => {
  const lower = word.toLowerCase();
  return lower.includes("'") ? lower.replaceAll("'", "") : lower;
};

export function splitWords(text: string): Word[] {
  const words: Word[] = [];
  let sentence = 0;
  let end = 0;
  for (let word = nextWord(text, 0); word; word = nextWord(text, end)) {
    const isOneSpace = word.from === end + 1 && text.charCodeAt(end) === SPACE;
    if (!isOneSpace && words.length > 0) {
      const gap = text.slice(end, word.from);
      if (SENTENCE_END.test(gap)) sentence++;
      if (PAUSE.test(gap)) words.push({ text: ",", from: end, to: word.from, sentence });
    }
    end = word.to;
    word.sentence = sentence;
    words.push(word);
  }
  return words;
}

/** As `WORD` finds it. Most words are ASCII, and a loop finds them faster than a regular expression with Unicode classes. */
function nextWord(text: string, after: number): Word | undefined {
  let from = after;
  let code = text.charCodeAt(from);
  while (code < NOT_ASCII && !BEGINS_WORD[code]) code = text.charCodeAt(++from);
  let to = from;
  while (code < NOT_ASCII && CONTINUES_WORD[code]) code = text.charCodeAt(++to);
  if (to > from && !(code >= NOT_ASCII))
    return { text: foldAsciiWord(text.slice(from, to)), from, to, sentence: 0 };
  if (from >= text.length) return undefined;
  WORD.lastIndex = from;
  const match = WORD.exec(text);
  return match
    ? { text: foldWord(match[0]), from: match.index, to: match.index + match[0].length, sentence: 0 }
    : undefined;
}

/**
 * Gives words that are written to escape a word list their plain form: spaced letters (`i g n o r e`), joined words
 * (`ignoreprevious`), digits for letters (`1gn0re`), and swapped letters inside a word, which models still read.
 */
export class Vocabulary {
  readonly #words: Set<string>;
  readonly #bySortedLetters = new Map<string, string>();
  /** Of the words of `#bySortedLetters`: checked first, because sorting letters costs more. */
  readonly #letterSums = new Set<number>();
  readonly #longest: number;

  constructor(words: Iterable<string>) {
    this.#words = new Set(words);
    this.#longest = Math.max(...[...this.#words].map(({ length }) => length));
    for (const word of this.#words) {
      if (word.length < MIN_SWAPPED_LETTERS) continue;
      this.#bySortedLetters.set(sortInnerLetters(word), word);
      this.#letterSums.add(sumLetters(word));
    }
  }

  normalize(words: readonly Word[]): Word[] {
    const cache = new Map<string, readonly string[]>();
    const normalized: Word[] = [];
    for (const word of joinSpacedLetters(words)) {
      let plain = cache.get(word.text);
      if (!plain) {
        plain = word.isSpaced ? this.#pickOut(word.text) : this.#plainForm(word.text);
        cache.set(word.text, plain);
      }
      if (plain.length === 1 && plain[0] === word.text) normalized.push(word);
      else for (const text of plain) normalized.push({ ...word, text });
    }
    return normalized;
  }

  #plainForm(word: string): string[] {
    if (this.#words.has(word) || !/[a-z]/.test(word)) return [word];
    const letters = /[0-9@$]/.test(word) ? fromLeetspeak(word) : [word];
    for (const spelling of letters) {
      if (this.#words.has(spelling)) return [spelling];
      const swapped = this.#swapped(spelling);
      if (swapped) return [swapped];
    }
    return this.#split(letters[0] ?? word) ?? [word];
  }

  #swapped(word: string): string | undefined {
    if (word.length < MIN_SWAPPED_LETTERS || !this.#letterSums.has(sumLetters(word))) return undefined;
    return this.#bySortedLetters.get(sortInnerLetters(word));
  }

  /** The longest known words of a text without spaces, with a word of its own for each unknown part. */
  #pickOut(text: string): string[] {
    const parts: string[] = [];
    let unknown = "";
    for (let at = 0; at < text.length; ) {
      let length = Math.min(this.#longest, text.length - at);
      while (length > 1 && !this.#words.has(text.slice(at, at + length))) length--;
      if (length > 1) {
        parts.push(...(unknown ? [unknown] : []), text.slice(at, at + length));
        unknown = "";
      } else unknown += text[at];
      at += length;
    }
    return unknown ? [...parts, unknown] : parts;
  }

  /** The fewest known words that make up a long one; null: none. */
  #split(word: string): string[] | null {
    if (word.length < MIN_JOINED_LETTERS || word.length > MAX_JOINED_LETTERS) return null;
    const best: (string[] | undefined)[] = [[]];
    for (let start = 0; start < word.length; start++) {
      const before = best[start];
      if (!before) continue;
      for (let end = start + 1; end <= Math.min(word.length, start + this.#longest); end++) {
        const part = word.slice(start, end);
        if (!this.#words.has(part)) continue;
        if (before.length + 1 < (best[end]?.length ?? Number.POSITIVE_INFINITY))
          best[end] = [...before, part];
      }
    }
    return best[word.length] ?? null;
  }
}

const MIN_SWAPPED_LETTERS = 6;
const MIN_JOINED_LETTERS = 9;
const MAX_JOINED_LETTERS = 120;

const sortInnerLetters = (word: string): string =>
  word[0] + [...word.slice(1, -1)].sort().join("") + word.at(-1);

/** The same for all orders of the letters. */
function sumLetters(word: string): number {
  let sum = 0;
  for (let at = 0; at < word.length; at++) sum = (sum + word.charCodeAt(at) ** 3) | 0;
  return sum;
}

const LEET: Record<string, string> = {
  "0": "o",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "8": "b",
  "9": "g",
  "@": "a",
  $: "s",
};

/** `1` is an i or an l. */
const fromLeetspeak = (word: string): string[] => {
  const letters = word.replace(/[03457-9@$]/g, (digit) => LEET[digit] ?? digit);
  return letters.includes("1") ? [letters.replaceAll("1", "i"), letters.replaceAll("1", "l")] : [letters];
};

/** Without a run of single letters, no word changes. */
function hasSpacedLetters(words: readonly Word[]): boolean {
  let run = 0;
  for (const { text } of words) {
    run = text.length === 1 ? run + 1 : 0;
    if (run === MIN_SPACED_LETTERS) return true;
  }
  return false;
}

/** Word by word with few characters between, on one line. */
const isSpacedLetter = (word: Word, previous: Word): boolean =>
  word.sentence === previous.sentence && word.from - previous.to <= MAX_SPACED_GAP;

function joinSpacedLetters(words: readonly Word[]): readonly Word[] {
  if (!hasSpacedLetters(words)) return words;
  const joined: Word[] = [];
  let run: Word[] = [];
  const endRun = () => {
    const [first, last] = [run[0], run.at(-1)];
    if (first && last && run.length >= MIN_SPACED_LETTERS)
      joined.push({ ...first, text: run.map(({ text }) => text).join(""), to: last.to, isSpaced: true });
    else joined.push(...run);
    run = [];
  };
  for (const word of words) {
    const previous = run.at(-1);
    if (previous && (word.text.length !== 1 || !isSpacedLetter(word, previous))) endRun();
    if (word.text.length === 1) run.push(word);
    else joined.push(word);
  }
  endRun();
  return joined;
}
