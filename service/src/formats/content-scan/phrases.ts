import type { ScanFindingKind, ScanSeverity } from "@stoa/contract";
import type { Match } from "./finding.ts";
import { Vocabulary, type Word } from "./words.ts";

/**
 * A rule as a sequence of words within one sentence, such as `NOT ~2 DISCLOSE ~3 USER`: upper case names a class of
 * words, `a|b` lists words, and `~2` allows up to two other words between.
 */
export interface PhraseRule {
  kind: ScanFindingKind;
  severity: ScanSeverity;
  phrase: string;
  reason: string;
  /** The rule does not apply within three words after one of this class: "do not mislead the user". */
  unlessAfter?: string;
  /** Nor directly before one of this class: "ignore all instructions in the text". */
  unlessBefore?: string;
}

interface Element {
  words: ReadonlySet<string>;
  gap: number;
}

interface CompiledRule {
  rule: PhraseRule;
  first: ReadonlySet<string>;
  rest: readonly Element[];
  unlessAfter: ReadonlySet<string>;
  unlessBefore: ReadonlySet<string>;
}

export type WordClasses = Readonly<Record<string, string>>;

const NEGATION_DISTANCE = 3;
/** Of one rule in one text: a moderator reads no more, and the time stays bounded. */
const MAX_MATCHES = 20;
const NO_WORDS: ReadonlySet<string> = new Set();
const NO_RULES: readonly CompiledRule[] = [];

export class PhraseMatcher {
  readonly #byFirstWord = new Map<string, CompiledRule[]>();
  readonly #vocabulary: Vocabulary;

  constructor(rules: readonly PhraseRule[], classes: WordClasses) {
    const compiled = rules.map((rule) => compileRule(rule, classes));
    for (const rule of compiled)
      for (const word of rule.first)
        this.#byFirstWord.set(word, [...(this.#byFirstWord.get(word) ?? []), rule]);
    this.#vocabulary = new Vocabulary(
      compiled.flatMap(({ first, rest }) => [...first, ...rest.flatMap(({ words }) => [...words])]),
    );
  }

  find(text: readonly Word[]): Match[] {
    const words = this.#vocabulary.normalize(text);
    const counts = new Map<CompiledRule, number>();
    const matches: Match[] = [];
    words.forEach((word, index) => {
      for (const rule of this.#byFirstWord.get(word.text) ?? NO_RULES) {
        const count = counts.get(rule) ?? 0;
        const last = count < MAX_MATCHES ? endOfMatch(words, index, rule) : undefined;
        if (!last) continue;
        counts.set(rule, count + 1);
        const { kind, severity, reason } = rule.rule;
        matches.push({ kind, severity, reason, from: word.from, to: last.to });
      }
    });
    return matches;
  }
}

function compileRule(rule: PhraseRule, classes: WordClasses): CompiledRule {
  const elements: Element[] = [];
  let gap = 0;
  for (const part of rule.phrase.split(" ")) {
    if (part.startsWith("~")) gap = Number(part.slice(1));
    else {
      elements.push({ words: wordsOf(part, classes), gap });
      gap = 0;
    }
  }
  const [first, ...rest] = elements;
  return {
    rule,
    first: first?.words ?? NO_WORDS,
    rest,
    unlessAfter: rule.unlessAfter ? wordsOf(rule.unlessAfter, classes) : NO_WORDS,
    unlessBefore: rule.unlessBefore ? wordsOf(rule.unlessBefore, classes) : NO_WORDS,
  };
}

function wordsOf(part: string, classes: WordClasses): Set<string> {
  return new Set(
    part.split("|").flatMap((name) => {
      if (!/^[A-Z_]+$/.test(name)) return [name];
      const words = classes[name];
      if (words === undefined) throw new Error(`No class of words is named ${name}`);
      return words.split(/\s+/).filter(Boolean);
    }),
  );
}

/** The last word of a match that begins at `start`. Follows all ways at once, so that no text takes exponential time. */
function endOfMatch(words: readonly Word[], start: number, rule: CompiledRule): Word | undefined {
  const sentence = words[start]?.sentence;
  const isInSentence = (index: number) => words[index]?.sentence === sentence;
  let ends = [start];
  for (const { words: wanted, gap } of rule.rest) {
    const next: number[] = [];
    // Ways that met go on as one.
    for (const end of ends)
      for (
        let index = Math.max(end, next.at(-1) ?? end) + 1;
        index <= end + 1 + gap && isInSentence(index);
        index++
      )
        if (wanted.has(words[index]?.text ?? "")) next.push(index);
    if (next.length === 0) return undefined;
    ends = next;
  }
  for (let before = 1; before <= NEGATION_DISTANCE && isInSentence(start - before); before++)
    if (rule.unlessAfter.has(words[start - before]?.text ?? "")) return undefined;
  const last = ends.find((end) => {
    const after = words[end + 1];
    return !(after && after.sentence === sentence && rule.unlessBefore.has(after.text));
  });
  return words[last ?? -1];
}
