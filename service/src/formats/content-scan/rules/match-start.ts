/** Characters that a set tells apart: each of ASCII, one for all others, and one for the ends of a text. */
export const NOT_ASCII = 128;
export const NO_CHARACTER = 129;
const ALL = 130;

export type CharacterSet = ReadonlySet<number>;
export type Start = readonly [CharacterSet, CharacterSet, CharacterSet];

/**
 * How a match of an expression can begin: a cheap check of each place of a text. It may allow places without a
 * match. It does not consider the two characters beside ASCII that are equal to `s` and `k` without case.
 */
export interface MatchStart {
  before: CharacterSet;
  /** The first three characters. */
  starts: readonly Start[];
}

type Node =
  | { kind: "set"; set: CharacterSet }
  | { kind: "sequence"; parts: readonly Node[] }
  | { kind: "choice"; parts: readonly Node[] }
  | { kind: "repeat"; part: Node; least: number; most: number }
  | { kind: "assertion"; source: string };

const DEPTH = 3;
const EVERY: CharacterSet = new Set(Array.from({ length: ALL }, (_, character) => character));
const ONLY_NOT_ASCII: CharacterSet = new Set([NOT_ASCII]);

export function matchStartOf({ source, ignoreCase }: RegExp): MatchStart {
  const root = new Parser(source, ignoreCase).parse();
  const starts: Start[] = [];
  visit(root, [], ([first = EVERY, second = EVERY, third = EVERY]) => starts.push([first, second, third]));
  return { before: charactersBefore(root, starts), starts };
}

type Path = readonly CharacterSet[];

/** Follows each way through `node` until three characters are known or, by `next`, behind it. */
function visit(node: Node, path: Path, next: (path: Path) => void): void {
  if (path.length >= DEPTH || node.kind === "assertion") next(path);
  else if (node.kind === "set") {
    next([...path, node.set]);
    // A character outside of the basic plane takes two places.
    if (node.set.has(NOT_ASCII)) next([...path, ONLY_NOT_ASCII, ONLY_NOT_ASCII]);
  } else if (node.kind === "choice") for (const part of node.parts) visit(part, path, next);
  else if (node.kind === "sequence") visitAll(node.parts, path, next);
  else {
    const { part, least, most } = node;
    if (least === 0) next(path);
    const rest: Node = { ...node, least: Math.max(0, least - 1), most: most - 1 };
    if (most > 0) visit(part, path, (after) => (after === path ? next(after) : visit(rest, after, next)));
  }
}

function visitAll([first, ...rest]: readonly Node[], path: Path, next: (path: Path) => void): void {
  if (first) visit(first, path, (after) => visitAll(rest, after, next));
  else next(path);
}

const charactersWhere = (isMember: (character: string) => boolean): number[] =>
  Array.from({ length: NOT_ASCII }, (_, code) => code).filter((code) => isMember(String.fromCharCode(code)));

const WORD_CHARACTERS: CharacterSet = new Set(charactersWhere((character) => /\w/.test(character)));

/** Of the characters beside ASCII, some are never in a set. */
const allExcept = (set: CharacterSet): CharacterSet =>
  new Set([...EVERY].filter((character) => character === NOT_ASCII || !set.has(character)));

/** By the assertion at the beginning of the expression. */
function charactersBefore(root: Node, starts: readonly Start[]): CharacterSet {
  const [assertion] = root.kind === "sequence" ? root.parts : [];
  if (assertion?.kind !== "assertion") return EVERY;
  const isWord = starts.every(([first]) => [...first].every((character) => WORD_CHARACTERS.has(character)));
  if (assertion.source === String.raw`\b` && isWord) return allExcept(WORD_CHARACTERS);
  const [, excluded] = /^\(\?<!(\[[^\]]*\]|\\[dw])\)$/.exec(assertion.source) ?? [];
  return excluded ? allExcept(readSet(excluded, false)) : EVERY;
}

/** Reads what the rules use of the syntax of regular expressions. */
class Parser {
  readonly #source: string;
  readonly #ignoreCase: boolean;
  #at = 0;

  constructor(source: string, ignoreCase: boolean) {
    this.#source = source;
    this.#ignoreCase = ignoreCase;
  }

  parse(): Node {
    const node = this.#choice();
    if (this.#at < this.#source.length) throw this.#problem();
    return node;
  }

  #choice(): Node {
    const parts = [this.#sequence()];
    while (this.#accept(/\|/y)) parts.push(this.#sequence());
    return parts.length === 1 && parts[0] ? parts[0] : { kind: "choice", parts };
  }

  #sequence(): Node {
    const parts: Node[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source[this.#at] ?? ""))
      parts.push(this.#withQuantifier(this.#atom()));
    return { kind: "sequence", parts };
  }

  #withQuantifier(part: Node): Node {
    const [quantifier, least, comma, most] = this.#accept(/(?:[?*+]|\{(\d+)(,?)(\d*)\})\??/y) ?? [];
    if (!quantifier) return part;
    if (least !== undefined) {
      const atMost = comma ? Number(most) || Number.POSITIVE_INFINITY : Number(least);
      return { kind: "repeat", part, least: Number(least), most: atMost };
    }
    const isOnce = quantifier.startsWith("?");
    return {
      kind: "repeat",
      part,
      least: quantifier.startsWith("+") ? 1 : 0,
      most: isOnce ? 1 : Number.POSITIVE_INFINITY,
    };
  }

  #atom(): Node {
    const from = this.#at;
    const [assertion] = this.#accept(/\\b|\^|\$/y) ?? [];
    if (assertion) return { kind: "assertion", source: assertion };
    const lookAround = this.#accept(/\(\?<?[=!]/y);
    if (lookAround || this.#accept(/\(\?:|\(\?<\w+>/y)) {
      const inner = this.#choice();
      if (!this.#accept(/\)/y)) throw this.#problem();
      return lookAround ? { kind: "assertion", source: this.#source.slice(from, this.#at) } : inner;
    }
    const [characters] =
      this.#accept(/\[(?:\\.|[^\]\\])+\]|\\x[0-9a-f]{2}|\\[dDsSwWn]|\\[^a-zA-Z0-9]|[^()[\]{}|?*+\\^$]/suy) ??
      [];
    if (!characters) throw this.#problem();
    return { kind: "set", set: readSet(characters, this.#ignoreCase) };
  }

  #accept(expression: RegExp): RegExpExecArray | null {
    expression.lastIndex = this.#at;
    const match = expression.exec(this.#source);
    if (match) this.#at += match[0].length;
    return match;
  }

  #problem(): Error {
    return new Error(`Cannot read the expression ${this.#source} at ${this.#at}`);
  }
}

const readSets = new Map<string, CharacterSet>();

/** The set of one character, one escape or one class. */
function readSet(source: string, ignoreCase: boolean): CharacterSet {
  const key = `${source} ${ignoreCase}`;
  let set = readSets.get(key);
  if (!set) {
    const one = new RegExp(source, ignoreCase ? "isu" : "su");
    const canBeNotAscii = /[^\p{ASCII}]|^\.$|^\[\^|\\[DsSWupP]/u.test(source);
    set = new Set([
      ...charactersWhere((character) => one.test(character)),
      ...(canBeNotAscii ? ONLY_NOT_ASCII : []),
    ]);
    readSets.set(key, set);
  }
  return set;
}
