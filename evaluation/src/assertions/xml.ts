import { XMLParser } from "fast-xml-parser";
import { type Finding, type Subject, UndecidableError } from "./finding.ts";
import { findXmlProblem } from "./xml-syntax.ts";

/** The output is a well-formed document that has the required elements, each a path such as `order.id`. */
export function isXml({ text, value }: Subject): Finding {
  const required = requiredElements(value);
  const problem = findXmlProblem(text);
  if (problem !== null) return { isMet: false, fact: `The output is not XML: it ${problem}.` };
  const result = parseAndCheck(text, required);
  if (result === "complete") return { isMet: true, fact: "The output is XML with all required elements." };
  return {
    isMet: false,
    fact: `The output is XML, but ${result === "faulty" ? "cannot be parsed" : "lacks a required element"}.`,
  };
}

/** Some part of the output is an element, or elements side by side, with the required elements inside. */
export function containsXml({ text, value }: Subject): Finding {
  const required = requiredElements(value);
  const complete: Span[] = [];
  let work = 0;
  for (const span of findSpans(text)) {
    if (complete.some(({ start, end }) => span.start >= start && span.end <= end)) continue;
    work += span.end - span.start;
    if (work > MAX_WORK) break;
    const result = parseAndCheck(text.slice(span.start, span.end), required);
    if (result === "complete")
      return { isMet: true, fact: "The output contains XML with all required elements." };
    if (result === "incomplete") complete.push(span);
  }
  return { isMet: false, fact: "The output contains no XML with all required elements." };
}

/** Characters read per output; otherwise a text of faulty tags takes minutes. */
const MAX_WORK = 5_000_000;

function requiredElements(value: unknown): string[] {
  if (typeof value === "string") return value.split(",").map((path) => path.trim());
  if (Array.isArray(value)) return value.map(String);
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0) return [];
  if ("requiredElements" in value && Array.isArray(value.requiredElements))
    return value.requiredElements.map(String);
  throw new UndecidableError("The value must be a list of element paths.");
}

function parseAndCheck(xml: string, required: string[]): "complete" | "incomplete" | "faulty" {
  const parser = new XMLParser({
    allowBooleanAttributes: true,
    ignoreAttributes: false,
    parseAttributeValue: true,
    parseTagValue: true,
  });
  try {
    const parsed: unknown = parser.parse(xml);
    return required.every((path) => hasPath(parsed, path.split("."))) ? "complete" : "incomplete";
  } catch {
    return "faulty";
  }
}

function hasPath(value: unknown, path: string[]): boolean {
  let inner = value;
  for (const name of path) {
    if (typeof inner !== "object" || inner === null) return false;
    if (Array.isArray(inner) && !/^(?:0|[1-9]\d*)$/.test(name)) return false;
    inner = Object.hasOwn(inner, name) ? (inner as Record<string, unknown>)[name] : undefined;
    if (inner === undefined) return false;
  }
  return true;
}

interface Span {
  start: number;
  end: number;
}

interface Element extends Span {
  /** The start of the open element around it. */
  parent: number | undefined;
}

/** First siblings together, then each element that is in no other one. */
function findSpans(text: string): Span[] {
  const elements = findElements(text);
  const starts = new Set(elements.map(({ start }) => start));
  const outermost = elements.filter(({ parent }) => parent === undefined || !starts.has(parent));
  const groups = new Map<number | undefined, Element[]>();
  for (const element of outermost)
    groups.get(element.parent)?.push(element) ?? groups.set(element.parent, [element]);
  const together = [...groups.values()]
    .filter((siblings) => siblings.length > 1)
    .map((siblings) => siblings.toSorted((one, other) => one.start - other.start || one.end - other.end))
    .map((siblings) => ({ start: siblings[0]!.start, end: siblings.at(-1)!.end }));
  return [...together, ...outermost.toSorted((one, other) => one.start - other.start || other.end - one.end)];
}

function findElements(text: string): Element[] {
  const elements: Element[] = [];
  let open: { name: string; start: number }[] = [];
  let work = 0;
  for (let index = text.indexOf("<"); index >= 0 && work < MAX_WORK; index = text.indexOf("<", index + 1)) {
    const tag = readTag(text, index);
    work += tag.end - index;
    if (tag.kind === "none") continue;
    const parent = open.at(-1)?.start;
    if (tag.kind === "empty") elements.push({ start: index, end: tag.end, parent });
    if (tag.kind === "opening") open.push({ name: tag.name, start: index });
    if (tag.kind === "closing" && open.at(-1)?.name === tag.name) {
      const { start } = open.pop()!;
      elements.push({ start, end: tag.end, parent: open.at(-1)?.start });
    } else if (tag.kind === "closing") open = [];
    index = tag.end - 1;
  }
  return elements;
}

interface Tag {
  kind: "none" | "other" | "opening" | "closing" | "empty";
  name: string;
  /** The position after it, or until which it was read. */
  end: number;
}

const START = String.raw`:A-Z_a-z\u{C0}-\u{D6}\u{D8}-\u{F6}\u{F8}-\u{2FF}\u{370}-\u{37D}\u{37F}-\u{1FFF}\u{200C}\u{200D}\u{2070}-\u{218F}\u{2C00}-\u{2FEF}\u{3001}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFFD}\u{10000}-\u{EFFFF}`;
const TAG_START = new RegExp(
  String.raw`<(\/?)([${START}][\-.\d\u{B7}\u{300}-\u{36F}\u{203F}\u{2040}${START}]*)`,
  "uy",
);
/** Up to `>` or `<`; neither ends a tag inside quotation marks. */
const TAG_REST = /(?:[^"'<>]|"[^"]*"|'[^']*')*/y;
const COMMENT = /<!--[\s\S]*?(?:-->|$)|<!\[CDATA\[[\s\S]*?(?:\]\]>|$)|<\?[\s\S]*?(?:\?>|$)/y;

function readTag(text: string, start: number): Tag {
  const isOther = text[start + 1] === "!" || text[start + 1] === "?";
  if (isOther)
    return { kind: "other", name: "", end: endOf(COMMENT, text, start) ?? endOfDeclaration(text, start) };
  TAG_START.lastIndex = start;
  const [, slash, name = ""] = TAG_START.exec(text) ?? [];
  if (name === "") return { kind: "none", name, end: start + 1 };
  const end = endOf(TAG_REST, text, TAG_START.lastIndex)!;
  if (text[end] !== ">") return { kind: "none", name, end };
  const isEmpty = /\/\s*$/.test(text.slice(Math.max(start, end - 100), end));
  return { kind: slash ? "closing" : isEmpty ? "empty" : "opening", name, end: end + 1 };
}

function endOf(pattern: RegExp, text: string, start: number): number | undefined {
  pattern.lastIndex = start;
  return pattern.test(text) ? pattern.lastIndex : undefined;
}

/** A document type ends at the first `>` outside quotation marks and brackets. */
function endOfDeclaration(text: string, start: number): number {
  let quote: string | null = null;
  let depth = 0;
  for (let index = start + 2; index < text.length; index++) {
    const character = text[index]!;
    if (quote !== null) quote = character === quote ? null : quote;
    else if (character === '"' || character === "'") quote = character;
    else if (character === "[") depth++;
    else if (character === "]") depth = Math.max(0, depth - 1);
    else if (character === ">" && depth === 0) return index + 1;
  }
  return text.length;
}
