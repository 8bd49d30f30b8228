import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from "yaml";
import type { ImportProblem } from "./file-content.ts";
import { formatPath, type Path } from "./problems.ts";
import { isTooLarge, MAX_DEPTH, MAX_TOKENS } from "./yaml-size.ts";

/** Values, with the repeats of aliases. */
const MAX_VALUES = 50_000;
const MAX_PROBLEMS = 20;

/** The parser overflows the stack, and throws or reports that. */
const TOO_DEEP: ImportProblem = { line: null, path: "", reason: "is nested too deeply to be read" };

const TOO_LARGE: ImportProblem = {
  line: null,
  path: "",
  reason: `has more than ${MAX_TOKENS} tokens, or is nested more than ${MAX_DEPTH} levels deep`,
};

/** A part of the file that cannot become a JSON value. */
export class SourceError extends Error {
  readonly line: number | null;
  readonly path: Path;

  constructor(line: number | null, path: Path, message: string) {
    super(message);
    this.line = line;
    this.path = path;
  }
}

/** Lines of an object's or list's members, and its own. */
interface Lines {
  own: number | null;
  members: Map<string | number, number | null>;
}

type Member = { key: string | number; node: unknown; line: number | null };

/**
 * A YAML or JSON file as JSON values whose lines are known. Aliases are copied within a limit of values; cycles, merge keys,
 * tags and keys that are no text are errors of the part that has them.
 */
export class YamlSource {
  readonly #document: ReturnType<typeof parseDocument>;
  readonly #counter: LineCounter;
  readonly #lines = new WeakMap<object, Lines>();
  #values = 0;

  private constructor(document: ReturnType<typeof parseDocument>, counter: LineCounter) {
    this.#document = document;
    this.#counter = counter;
  }

  static parse(text: string): YamlSource | { problems: ImportProblem[] } {
    if (isTooLarge(text)) return { problems: [TOO_LARGE] };
    const counter = new LineCounter();
    try {
      const document = parseDocument(text, {
        lineCounter: counter,
        logLevel: "error",
        prettyErrors: false,
        uniqueKeys: false,
      });
      if (document.errors.length === 0) return new YamlSource(document, counter);
      if (document.errors.some(({ message }) => message.includes("call stack")))
        return { problems: [TOO_DEEP] };
      return {
        problems: document.errors.slice(0, MAX_PROBLEMS).map(({ message, pos: [start] }) => ({
          line: counter.linePos(start).line,
          path: "",
          reason: `is not valid YAML: ${message}`,
        })),
      };
    } catch {
      return { problems: [TOO_DEEP] };
    }
  }

  get root(): unknown {
    return this.#document.contents;
  }

  /** The members of a list or an object, not yet converted; null for anything else. */
  membersOf(node: unknown, path: Path): Member[] | null {
    const resolved = this.#resolve(node, path);
    if (isSeq(resolved))
      return resolved.items.map((item, key) => ({ key, node: item, line: this.lineOfNode(item) }));
    if (!isMap(resolved)) return null;
    const members = resolved.items.map((pair) => this.#memberOf(pair, path));
    // The parser's own search for equal keys takes quadratic time.
    const keys = new Set<string | number>();
    for (const { key, line } of members) {
      if (keys.has(key)) throw new SourceError(line, [...path, key], "is here twice; keys must be unique");
      keys.add(key);
    }
    return members;
  }

  isList(node: unknown): boolean {
    return isSeq(this.#resolve(node, []));
  }

  lineOfNode(node: unknown): number | null {
    const start = (node as Node | null)?.range?.[0];
    return start === undefined ? null : this.#counter.linePos(start).line;
  }

  /** @throws {SourceError} if it is no JSON value, or too large */
  toValue(node: unknown, path: Path, open: readonly unknown[] = []): unknown {
    this.#values++;
    const line = this.lineOfNode(node);
    if (this.#values > MAX_VALUES)
      throw new SourceError(line, [], `has more than ${MAX_VALUES} values, with its aliases`);
    if (open.length > MAX_DEPTH)
      throw new SourceError(line, path, `is nested more than ${MAX_DEPTH} levels deep`);
    const resolved = this.#resolve(node, path);
    if (open.includes(resolved) && resolved !== null)
      throw new SourceError(line, path, "contains itself by an alias");
    if (isScalar(resolved)) return scalarValue(resolved.value, line, path);
    const members = this.membersOf(resolved, path);
    if (members === null) return null;
    const inner = [...open, resolved];
    const values = members.map(
      ({ key, node: member }) => [key, this.toValue(member, [...path, key], inner)] as const,
    );
    const value = isSeq(resolved) ? values.map(([, item]) => item) : Object.fromEntries(values);
    this.#lines.set(value, {
      own: line,
      members: new Map(members.map((member) => [member.key, member.line])),
    });
    return value;
  }

  /** The line of a place below a value that was made of values of this source. */
  lineOf(value: unknown, path: Path): number | null {
    let line: number | null = null;
    let current = value;
    for (const part of [null, ...path]) {
      const outer = typeof current === "object" && current !== null ? current : {};
      if (part !== null) {
        line = this.#lines.get(outer)?.members.get(part) ?? line;
        current = Object.hasOwn(outer, part) ? (outer as Record<string | number, unknown>)[part] : undefined;
      }
      if (typeof current === "object" && current !== null) line = this.#lines.get(current)?.own ?? line;
    }
    return line;
  }

  /** Gives a copy the lines of its original. */
  copyLines<Copy extends object>(original: object, copy: Copy): Copy {
    const lines = this.#lines.get(original);
    if (lines) this.#lines.set(copy, lines);
    return copy;
  }

  #resolve(node: unknown, path: Path): unknown {
    if (!isAlias(node)) return node;
    const resolved = node.resolve(this.#document);
    if (resolved) return resolved;
    throw new SourceError(
      this.lineOfNode(node),
      path,
      `names the anchor ${node.source}, which is not defined before it`,
    );
  }

  #memberOf({ key, value }: Pair, path: Path): Member {
    const line = this.lineOfNode(key);
    const name = isScalar(key) ? key.value : key;
    if (typeof name !== "string")
      throw new SourceError(line, path, "has a key that is no text; put it into quotation marks");
    if (name === "<<")
      throw new SourceError(line, path, "has a merge key (<<), which is not supported; write the fields");
    if (name === "__proto__")
      throw new SourceError(line, path, "has the key __proto__, which is not allowed");
    return { key: name, node: value, line };
  }
}

function scalarValue(value: unknown, line: number | null, path: Path): unknown {
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) return value;
  throw new SourceError(line, path, "is no text, number or boolean");
}

export const toProblem = ({ line, path, message }: SourceError): ImportProblem => ({
  line,
  path: formatPath(path),
  reason: message,
});
