import { type ComparedForm, comparedForms, readings, toLetters } from "./letter-readings.ts";
import { STOCK_PHRASES } from "./stock-phrases.ts";

/**
 * Withholds outputs that repeat the hidden text. It compares letters, not words, because attackers ask for other separators.
 * docs/decisions/0072-try-outs.md has the measurements behind the numbers.
 */
const SHINGLE = 8;
/** Letters of the output that share not even two or three letters with the hidden text begin no run. */
const BEGINNINGS = [3, 2] as const;
/** In characters of the output: letters of a reading further apart belong to no run. */
const MAX_GAP = 80;
/** Consecutive shingles in common, that is 37 letters or about 7 words. */
const MAX_RUN = 30;
/** The same for readings that decode the output: of an honest text they make letters without a meaning. */
const MAX_DECODED_RUN = 12;
/** The same for an output that is little else: a piece of the text that was asked for alone. */
const MAX_RUN_ALONE = 8;
const ALONE_SHARE = 0.6;
/** Shingles in common in runs of any length, when the output consists largely of such runs. */
const MAX_SCATTERED = 40;
const SCATTERED_SHARE = 0.3;
/** A run below this is chance. */
const MIN_RUN = 4;
/** Distinct words in common in any order, such as a sorted list. */
const MIN_WORD_LENGTH = 4;
const MAX_WORDS = 8;
const WORDS_SHARE = 0.7;
/**
 * A hidden text with fewer shingles in all arrangements, that is about 200 words, has lower limits: a phrase is a larger part of it, and
 * an honest output has fewer phrases to share.
 */
const LONG_TEXT = 4_000;
/** The shortest texts have half of the limits. */
const LEAST_SHARE = 0.5;

/** What the guard looks for: the hidden text without what the buyer sees anyway. */
export interface HiddenText {
  shingles: ShinglesByForm;
  public: Record<ComparedForm, ShingleLookup>;
  words: ReadonlySet<string>;
  visibleWords: ReadonlySet<string>;
  limits: Limits;
}

interface Limits {
  run: number;
  scattered: number;
  words: number;
}

const A_AND_Z = 97 + 122;

const wordsOf = (text: string): string[] =>
  text
    .normalize("NFKC")
    .split(/[^\p{L}\p{M}\p{N}]+/u)
    .filter(Boolean);
const plainWords = (text: string) => wordsOf(text).map((word) => [...word].map(toLetters).join(""));

function lettersOf(text: string, form: ComparedForm): string {
  let found = "";
  const reading = comparedForms[form]((letter) => {
    found += letter;
  });
  for (const character of text) reading.push(character, 0);
  // Ends the last word.
  reading.push(" ", 0);
  return found;
}

const reverse = (text: string) => [...text].reverse().join("");

/** Of the last letters before `end`; without slices, because every letter of every reading is hashed several times. */
function hashOf(letters: readonly string[] | string, size: number, end = letters.length): number {
  let hash = 0;
  for (let at = end - size; at < end; at++)
    hash = (Math.imul(hash, 0x01000193) ^ (letters[at] as string).charCodeAt(0)) | 0;
  return hash;
}

function addShingles(shingles: Set<number>, letters: string): void {
  for (const size of [SHINGLE, ...BEGINNINGS])
    for (let end = size; end <= letters.length; end++) shingles.add(hashOf(letters, size, end));
}

/** Forwards, backwards, with the words in reverse order, and each word backwards. */
const arrangementsOf = (text: string): string[] => {
  const backwards = wordsOf(text).reverse().join(" ");
  return [text, reverse(text), backwards, reverse(backwards)];
};

/** The reversed alphabet turns the steps between letters around. */
const toAtbash = (text: string) =>
  text.toLowerCase().replace(/[a-z]/g, (letter) => String.fromCharCode(A_AND_Z - letter.charCodeAt(0)));

type ShinglesByForm = Record<ComparedForm, ReadonlySet<number>>;
type ShingleLookup = Pick<ReadonlySet<number>, "has">;

const forms = Object.keys(comparedForms) as ComparedForm[];
const byForm = <Value>(make: (form: ComparedForm) => Value) =>
  Object.fromEntries(forms.map((form) => [form, make(form)])) as Record<ComparedForm, Value>;

function shinglesOf(texts: readonly string[]): ShinglesByForm {
  const found = byForm(() => new Set<number>());
  for (const text of texts)
    for (const arranged of arrangementsOf(text)) {
      for (const form of forms) addShingles(found[form], lettersOf(arranged, form));
      addShingles(found.alphabetSteps, lettersOf(toAtbash(arranged), "alphabetSteps"));
    }
  return found;
}

const stockShingles = shinglesOf(STOCK_PHRASES);

/** Without a copy of the stock phrases for each hidden text. */
const eitherOf = (one: ShingleLookup, other: ShingleLookup): ShingleLookup => ({
  has: (shingle) => one.has(shingle) || other.has(shingle),
});

/** Of what the visitor does not see: a long input must not make a short prompt long. */
function limitsFor(hidden: ReadonlySet<number>, visible: ShingleLookup): Limits {
  const secret = [...hidden].filter((shingle) => !visible.has(shingle)).length;
  const share = Math.min(1, Math.max(LEAST_SHARE, secret / LONG_TEXT));
  return { run: MAX_RUN * share, scattered: MAX_SCATTERED * share, words: MAX_WORDS * share };
}

/** `visible`: what the visitor sees or wrote, such as the preview, the samples and the variables. */
export function hideText(hidden: readonly string[], visible: readonly string[]): HiddenText {
  const seen = new Set(visible.flatMap(plainWords));
  const words = hidden
    .flatMap(plainWords)
    .filter((word) => word.length >= MIN_WORD_LENGTH && !seen.has(word));
  const shingles = shinglesOf(hidden);
  const visibleShingles = shinglesOf(visible);
  const publicShingles = byForm((form) => eitherOf(visibleShingles[form], stockShingles[form]));
  return {
    shingles,
    public: publicShingles,
    words: new Set(words),
    visibleWords: seen,
    limits: limitsFor(shingles.letters, publicShingles.letters),
  };
}

/** Follows one reading of the output. */
class RunMatcher {
  readonly #hidden: ReadonlySet<number>;
  readonly #public: ShingleLookup;
  readonly #last: string[] = [];
  readonly #places: number[] = [];
  #runFrom: number | null = null;
  /** How many of the last letters may begin a run. */
  #begun = 0;
  run = 0;
  longest = 0;
  scattered = 0;
  letters = 0;

  constructor(hidden: ReadonlySet<number>, visible: ShingleLookup) {
    this.#hidden = hidden;
    this.#public = visible;
  }

  push(letter: string, at: number): void {
    this.letters++;
    if (at - (this.#places.at(-1) ?? at) > MAX_GAP) this.#reset();
    this.#last.push(letter);
    this.#places.push(at);
    if (this.#last.length > SHINGLE) {
      this.#last.shift();
      this.#places.shift();
    }
    this.#begun = this.#countBegun();
    if (this.#last.length < SHINGLE) return;
    const shingle = hashOf(this.#last, SHINGLE);
    if (!this.#hidden.has(shingle)) this.#endRun();
    else {
      this.#runFrom ??= this.#places[0] ?? at;
      // A visible shingle neither counts nor ends the run, so that visible words do not split a hidden sentence.
      if (this.#public.has(shingle)) return;
      this.run++;
      this.longest = Math.max(this.longest, this.run);
      if (this.run >= MIN_RUN) this.scattered += this.run === MIN_RUN ? MIN_RUN : 1;
    }
  }

  #countBegun(): number {
    const [three, two] = BEGINNINGS;
    const isHidden = (size: number) =>
      this.#last.length >= size && this.#hidden.has(hashOf(this.#last, size));
    if (isHidden(three)) return Math.min(this.#begun + 1, SHINGLE - 1);
    return isHidden(two) ? two : 1;
  }

  #reset(): void {
    this.#last.length = 0;
    this.#places.length = 0;
    this.#begun = 0;
    this.#endRun();
  }

  #endRun(): void {
    this.run = 0;
    this.#runFrom = null;
  }

  /** From here on the output may belong to a run. */
  holdFrom(end: number): number {
    if (end - (this.#places.at(-1) ?? end) > MAX_GAP) return end;
    return this.#runFrom ?? this.#places.at(-Math.max(1, this.#begun)) ?? end;
  }
}

/** Reads an output piece by piece. `push` returns the text that may be shown; null: the output must be withheld. */
export class LeakGuard {
  readonly #matchers: RunMatcher[] = [];
  readonly #decoded: RunMatcher[] = [];
  readonly #read: ((character: string, at: number) => void)[] = [];
  readonly #plain: RunMatcher;
  readonly #hidden: HiddenText;
  readonly #words = new Set<string>();
  #word = "";
  #wordHits = 0;
  #text = "";
  #shown = 0;
  #isWithheld = false;

  constructor(hidden: HiddenText) {
    this.#hidden = hidden;
    for (const { form, isDecoding, read } of readings) {
      const matcher = new RunMatcher(hidden.shingles[form], hidden.public[form]);
      const reading = read((letter, at) => matcher.push(letter, at));
      this.#matchers.push(matcher);
      if (isDecoding) this.#decoded.push(matcher);
      this.#read.push((character, at) => reading.push(character, at));
    }
    this.#plain = this.#matchers[0] as RunMatcher;
  }

  get isWithheld(): boolean {
    return this.#isWithheld;
  }

  push(piece: string): string | null {
    for (const character of piece) this.#readCharacter(character);
    if (this.#isWithheld || this.#isLeaking()) return this.#withhold();
    return this.#show(Math.min(...this.#matchers.map((matcher) => matcher.holdFrom(this.#text.length))));
  }

  /** The rest of the output; null: it must be withheld. */
  finish(): string | null {
    for (const read of this.#read) read("\n", this.#text.length);
    this.#endWord();
    if (this.#isWithheld || this.#isLeaking() || this.#isPiece()) return this.#withhold();
    return this.#show(this.#text.length);
  }

  #readCharacter(character: string): void {
    const at = this.#text.length;
    this.#text += character;
    for (const read of this.#read) read(character, at);
    const more = toLetters(character);
    if (more === "") this.#endWord();
    else this.#word += more;
  }

  #endWord(): void {
    const word = this.#word;
    this.#word = "";
    if (word.length < MIN_WORD_LENGTH || this.#words.has(word) || this.#hidden.visibleWords.has(word)) return;
    this.#words.add(word);
    if (this.#hidden.words.has(word)) this.#wordHits++;
  }

  #isLeaking(): boolean {
    const { scattered, letters } = this.#plain;
    const { limits } = this.#hidden;
    return (
      this.#matchers.some(({ longest }) => longest >= limits.run) ||
      this.#decoded.some(({ longest }) => longest >= MAX_DECODED_RUN) ||
      (scattered >= limits.scattered && scattered >= SCATTERED_SHARE * letters) ||
      (this.#wordHits >= limits.words && this.#wordHits >= WORDS_SHARE * this.#words.size)
    );
  }

  #isPiece(): boolean {
    return this.#matchers.some(
      ({ longest, letters }) =>
        longest >= MAX_RUN_ALONE && letters > 0 && longest + SHINGLE - 1 >= ALONE_SHARE * letters,
    );
  }

  #withhold(): null {
    this.#isWithheld = true;
    return null;
  }

  #show(end: number): string {
    const piece = this.#text.slice(this.#shown, end);
    this.#shown = Math.max(this.#shown, end);
    return piece;
  }
}
