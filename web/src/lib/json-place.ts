import type { FieldPath } from "./workflow-document.ts";

export interface JsonPlace {
  from: number;
  to: number;
}

const TOKEN = /[ \t\r\n]*("(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+)/y;

/**
 * Where a value stands in JSON text; of what is missing, the object that lacks it. Text that is not JSON is read as far as it can be.
 */
export function findPlace(text: string, path: FieldPath): JsonPlace {
  const scanner = new Scanner(text);
  return scanner.find(path) ?? { from: 0, to: text.length };
}

/** From 1. */
export const lineOf = (text: string, offset: number): number => text.slice(0, offset).split("\n").length;

class Scanner {
  readonly #text: string;
  #at = 0;
  #from = 0;

  constructor(text: string) {
    this.#text = text;
  }

  #next(): string | null {
    TOKEN.lastIndex = this.#at;
    const token = TOKEN.exec(this.#text)?.[1];
    if (token === undefined) return null;
    this.#at = TOKEN.lastIndex;
    this.#from = this.#at - token.length;
    return token;
  }

  find([key, ...rest]: FieldPath): JsonPlace | null {
    const opening = this.#next();
    const from = this.#from;
    if (key === undefined || (opening !== "{" && opening !== "[")) {
      if (opening !== null) this.#skip(opening);
      return { from, to: this.#at };
    }
    for (let index = 0; ; index++) {
      const name = opening === "[" ? index : this.#readName();
      if (name === null || (opening === "[" && this.#isAtEnd())) break;
      if (name === key) return this.find(rest);
      const token = this.#next();
      if (token === null) break;
      this.#skip(token);
      if (this.#next() !== ",") break;
    }
    // The brace alone: a mark over the whole object would cover what is right.
    return { from, to: from + 1 };
  }

  #readName(): string | null {
    const token = this.#next();
    if (!token?.startsWith('"')) return null;
    try {
      const name = JSON.parse(token) as string;
      return this.#next() === ":" ? name : null;
    } catch {
      return null;
    }
  }

  #isAtEnd(): boolean {
    const before = this.#at;
    const token = this.#next();
    this.#at = before;
    return token === null || token === "]";
  }

  /** To the end of the value that begins with the token. */
  #skip(opening: string): void {
    let depth = opening === "{" || opening === "[" ? 1 : 0;
    while (depth > 0) {
      const token = this.#next();
      if (token === null) return;
      if (token === "{" || token === "[") depth++;
      if (token === "}" || token === "]") depth--;
    }
  }
}
