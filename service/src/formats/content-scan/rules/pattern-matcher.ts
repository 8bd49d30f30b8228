import type { Match } from "../finding.ts";
import { type CharacterSet, matchStartOf, NO_CHARACTER, NOT_ASCII, type Start } from "./match-start.ts";
import type { PatternRule } from "./pattern-rule.ts";

const MAX_MATCHES = 20;
/** A set with more characters matches at nearly each place of a text. */
const MAX_CHARACTERS = 24;
/** A rule with more starts is searched in the whole text: one long search costs less than many short ones. */
const MIN_CHARACTERS_OF_A_START = 200;
/** Without case, they are equal to `s` and `k`, which starts do not consider. */
const FOLDED_TO_ASCII = ["\u017f", "\u212a"];

interface IndexedRule {
  rule: PatternRule;
  before: CharacterSet;
  /** The expression at one place. */
  atPlace: RegExp;
}

/**
 * Finds the matches of many rules. One pass over the text finds by three characters where a match of each rule can
 * begin, and the rule's expression is tried there alone. Rules that can begin nearly everywhere are searched in the
 * whole text.
 */
export class PatternMatcher {
  readonly #rules: readonly PatternRule[];
  readonly #indexed = new Map<PatternRule, IndexedRule>();
  readonly #index = new StartIndex();

  constructor(rules: readonly PatternRule[]) {
    this.#rules = rules;
    for (const rule of rules) {
      const { before, starts } = matchStartOf(rule.expression);
      if (!starts.every(isSelective)) continue;
      const { source, flags } = rule.expression;
      const indexed = { rule, before, atPlace: new RegExp(source, flags.replace("g", "y")) };
      this.#indexed.set(rule, indexed);
      this.#index.add(indexed, starts);
    }
  }

  /** In the order of the rules. */
  find(text: string, lowerCase: string): Match[] {
    const hints = new Hints(lowerCase);
    if (FOLDED_TO_ASCII.some((character) => text.includes(character)))
      return this.#rules.flatMap((rule) => findInWhole(text, rule, hints));
    const maxPlaces = text.length / MIN_CHARACTERS_OF_A_START;
    const places = this.#index.find(text, maxPlaces);
    const matches: Match[] = [];
    // Most rules can begin nowhere in a text, and a product has many short texts.
    for (const rule of this.#rules) {
      const indexed = this.#indexed.get(rule);
      const starts = indexed && places.get(indexed);
      if (indexed && !starts) continue;
      if (!indexed || !starts || starts.length > maxPlaces) matches.push(...findInWhole(text, rule, hints));
      else {
        const found = toMatches(rule, matchesAt(text, indexed.atPlace, starts));
        if (found.length > 0 && hints.haveOneOf(rule)) matches.push(...found);
      }
    }
    return matches;
  }
}

const findInWhole = (text: string, rule: PatternRule, hints: Hints): Match[] =>
  hints.haveOneOf(rule) ? toMatches(rule, text.matchAll(rule.expression)) : [];

/** Which hints of rules a text has. Several rules ask for the same. */
class Hints {
  readonly #lowerCase: string;
  readonly #known = new Map<string, boolean>();

  constructor(lowerCase: string) {
    this.#lowerCase = lowerCase;
  }

  haveOneOf({ hints }: PatternRule): boolean {
    return hints.length === 0 || hints.some((hint) => this.#has(hint));
  }

  #has(hint: string): boolean {
    const known = this.#known.get(hint);
    if (known !== undefined) return known;
    const has = this.#lowerCase.includes(hint);
    this.#known.set(hint, has);
    return has;
  }
}

const isSelective = (start: Start): boolean =>
  !start[0].has(NOT_ASCII) && start.some(({ size }) => size <= MAX_CHARACTERS);

/** The index ignores the case of letters, and all kinds of space are one: its table has to fit into the cache of the processor. */
const CLASSES = Uint8Array.from({ length: NOT_ASCII }, (_, code) => {
  const character = String.fromCharCode(code).toLowerCase();
  return character <= " " || character > "~" ? 0 : character.charCodeAt(0) - 32 - (character > "Z" ? 26 : 0);
});
const NOT_ASCII_CLASS = 69;
const NO_CHARACTER_CLASS = 70;
const CLASS_COUNT = 71;

const classOf = (character: number): number =>
  character < NOT_ASCII
    ? (CLASSES[character] ?? 0)
    : character === NO_CHARACTER
      ? NO_CHARACTER_CLASS
      : NOT_ASCII_CLASS;

const classAt = (text: string, at: number): number => {
  const code = text.charCodeAt(at);
  return code < NOT_ASCII ? (CLASSES[code] ?? 0) : at < text.length ? NOT_ASCII_CLASS : NO_CHARACTER_CLASS;
};

const characterBefore = (text: string, at: number): number =>
  at === 0 ? NO_CHARACTER : Math.min(text.charCodeAt(at - 1), NOT_ASCII);

/** Which rules can begin with three characters. */
class StartIndex {
  /** For each three classes, the number of a list of rules. */
  readonly #lists = new Uint16Array(CLASS_COUNT ** 3);
  readonly #rules: (readonly IndexedRule[])[] = [[]];

  add(rule: IndexedRule, starts: readonly Start[]): void {
    const longer = new Map<number, number>();
    const added = new Set<number>();
    for (const [first, second, third] of starts.map((start) => start.map(toClasses)))
      for (const a of first ?? [])
        for (const b of second ?? [])
          for (const c of third ?? []) {
            const place = (a * CLASS_COUNT + b) * CLASS_COUNT + c;
            const list = this.#lists[place] ?? 0;
            if (added.has(list)) continue;
            const next = longer.get(list) ?? this.#rules.push([...(this.#rules[list] ?? []), rule]) - 1;
            longer.set(list, next);
            added.add(next);
            this.#lists[place] = next;
          }
  }

  /** Of a rule with more than `most` places, it stops to collect them. */
  find(text: string, most: number): Map<IndexedRule, number[]> {
    const places = new Map<IndexedRule, number[]>();
    let first = classAt(text, 0);
    let second = classAt(text, 1);
    for (let at = 0; at < text.length; at++) {
      const third = classAt(text, at + 2);
      const list = this.#lists[(first * CLASS_COUNT + second) * CLASS_COUNT + third] ?? 0;
      if (list !== 0)
        for (const rule of this.#rules[list] ?? []) {
          const known = places.get(rule);
          if ((known && known.length > most) || !rule.before.has(characterBefore(text, at))) continue;
          if (known) known.push(at);
          else places.set(rule, [at]);
        }
      first = second;
      second = third;
    }
    return places;
  }
}

const toClasses = (characters: CharacterSet): Set<number> => new Set([...characters].map(classOf));

/** As `matchAll` finds them, where each match begins at one of the places. */
function* matchesAt(text: string, atPlace: RegExp, places: readonly number[]): Generator<RegExpExecArray> {
  let end = 0;
  for (const place of places) {
    if (place < end) continue;
    atPlace.lastIndex = place;
    const match = atPlace.exec(text);
    if (!match) continue;
    end = atPlace.lastIndex;
    yield match;
  }
}

function toMatches(rule: PatternRule, found: Iterable<RegExpExecArray>): Match[] {
  const matches: Match[] = [];
  for (const match of found) {
    if (rule.isHarmless?.(match)) continue;
    const { kind, severity, reason, toExcerpt } = rule;
    const place = { from: match.index, to: match.index + match[0].length };
    matches.push({ kind, severity, reason, ...place, ...(toExcerpt && { excerpt: toExcerpt(match) }) });
    if (matches.length === MAX_MATCHES) break;
  }
  return matches;
}
