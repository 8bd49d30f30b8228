import type { ValidationIssue } from "../../core/errors.ts";
import { lastOf } from "../../core/required.ts";
import { findShapeProblem } from "../../platform/http/json-body.ts";

const MAX_DEPTH = 64;
/** More than 50 steps need. Checking so many takes about 50 ms. */
const MAX_WORKFLOW_MEMBERS = 5_000;

export type ParsedJson = { value: unknown } | { issues: ValidationIssue[] };

/**
 * Reports line and column, which JSON.parse() often does not. Also refuses duplicate keys, of which JSON.parse() silently uses the last,
 * and text that PostgreSQL cannot store.
 */
export function parseJsonText(text: string): ParsedJson {
  const shape = findShapeProblem(Buffer.from(text), MAX_WORKFLOW_MEMBERS);
  const issues = shape ? [{ path: [], reason: shape }] : scanJson(text);
  return issues.length > 0 ? { issues } : { value: JSON.parse(text) };
}

const STRING = String.raw`"[^"\\\0-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\0-\x1f]*)*"`;
const SCALAR = String.raw`-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null`;
const TOKEN = new RegExp(String.raw`[ \t\r\n]*(?:(${STRING})|(?:${SCALAR})|([{}[\],:]))`, "y");
const WHITESPACE = /[ \t\r\n]*/y;

type NestingLevel = { index: number } | { key: string; seen: Set<string> };

/** Besides the end of a list or an object that has just started. */
type ExpectedToken = "value" | "key" | "colon" | "comma" | "nothing";

interface ScanState {
  levels: NestingLevel[];
  next: ExpectedToken;
  hasBegun: boolean;
  issues: ValidationIssue[];
}

function scanJson(text: string): ValidationIssue[] {
  const state: ScanState = { levels: [], next: "value", hasBegun: false, issues: [] };
  let at = 0;
  while (state.next !== "nothing") {
    TOKEN.lastIndex = at;
    const token = TOKEN.exec(text);
    if (!token || !acceptToken(state, token[1], token[2])) return [toSyntaxIssue(text, at)];
    if (state.levels.length > MAX_DEPTH) {
      return [{ path: [], reason: `is nested deeper than ${MAX_DEPTH} levels` }];
    }
    at = TOKEN.lastIndex;
  }
  return skipWhitespace(text, at) === text.length ? state.issues : [toSyntaxIssue(text, at)];
}

function skipWhitespace(text: string, from: number): number {
  WHITESPACE.lastIndex = from;
  WHITESPACE.exec(text);
  return WHITESPACE.lastIndex;
}

function toSyntaxIssue(text: string, from: number): ValidationIssue {
  const at = skipWhitespace(text, from);
  if (at === text.length) return { path: [], reason: "is not valid JSON: it ends too early" };
  const lines = text.slice(0, at).split("\n");
  const position = `line ${lines.length}, column ${lastOf(lines).length + 1}`;
  return { path: [], reason: `is not valid JSON: see ${position}` };
}

/** Whether the token is valid here: a string, a punctuation mark, or, with neither, a number, true, false or null. */
function acceptToken(state: ScanState, string: string | undefined, mark: string | undefined): boolean {
  const { next, hasBegun, levels } = state;
  const level = levels.at(-1);
  const mayEnd = next === "comma" || (hasBegun && next !== "colon");
  state.hasBegun = false;
  if (mark === "}" || mark === "]") {
    if (!level || !mayEnd || "key" in level !== (mark === "}")) return false;
    levels.pop();
    return endValue(state);
  }
  if (next === "colon") return mark === ":" && expectNext(state, "value");
  if (next === "comma") return mark === "," && level !== undefined && expectNextMember(state, level);
  if (string !== undefined) checkString(state, JSON.parse(string));
  if (next === "key") return string !== undefined && expectNext(state, "colon");
  if (mark === "{" || mark === "[") return openLevel(state, mark);
  return mark === undefined && endValue(state);
}

function expectNext(state: ScanState, next: ExpectedToken): true {
  state.next = next;
  return true;
}

const endValue = (state: ScanState) => expectNext(state, state.levels.length === 0 ? "nothing" : "comma");

function expectNextMember(state: ScanState, level: NestingLevel): true {
  if ("key" in level) return expectNext(state, "key");
  level.index++;
  return expectNext(state, "value");
}

function openLevel(state: ScanState, mark: "{" | "["): true {
  state.levels.push(mark === "{" ? { key: "", seen: new Set() } : { index: 0 });
  state.hasBegun = true;
  return expectNext(state, mark === "{" ? "key" : "value");
}

function checkString({ levels, next, issues }: ScanState, text: string): void {
  const level = levels.at(-1);
  const isKey = next === "key" && level !== undefined && "key" in level;
  if (isKey) level.key = text;
  const reason = findTextProblem(text) ?? (isKey ? findKeyProblem(text, level.seen) : null);
  if (reason) issues.push({ path: levels.map((one) => ("key" in one ? one.key : one.index)), reason });
  if (isKey) level.seen.add(text);
}

const findTextProblem = (text: string) =>
  text.includes("\0") || !text.isWellFormed()
    ? "must not contain NUL characters or half of a surrogate pair"
    : null;

function findKeyProblem(key: string, seen: ReadonlySet<string>): string | null {
  if (key === "__proto__") return "is not a name that can be used";
  return seen.has(key) ? "appears twice in its object" : null;
}
