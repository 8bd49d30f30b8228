import { type DefaultTreeAdapterTypes, parse } from "parse5";
import type { Finding, Subject } from "./finding.ts";

type Node = DefaultTreeAdapterTypes.Node;
type Element = DefaultTreeAdapterTypes.Element;

/** promptfoo's limit; longer texts are no HTML. */
const MAX_TEXT = 10_485_760;

const TAG_NAME = /<[a-zA-Z][a-zA-Z0-9-]*/g;
const CLOSING_TAG = /<\/[a-zA-Z][a-zA-Z0-9-]*\s*>/;
const ENTITY = /&(?:[a-zA-Z]+|#[0-9]+|#x[0-9a-fA-F]+);/;
const DOCTYPE = /<!DOCTYPE\s+html/i;
const COMMENT = /<!--[^-]*(?:-[^-]+)*-->/;
const ATTRIBUTE = /\s[a-zA-Z-]+=\s*["'][^"']*["']/;
const COMMON_TAG =
  /<(html|head|body|div|span|p|a|img|h[1-6]|ul|ol|li|table|tr|td|th|form|input|button|script|style|link|meta|br|hr)\b/i;

/** Two signs of HTML are enough; a pair of tags, a doctype and a common tag count twice. */
export function containsHtml({ text }: Subject): Finding {
  const isMet = text.length <= MAX_TEXT && countSigns(text) >= 2;
  return { isMet, fact: isMet ? "The output contains HTML." : "The output contains no HTML." };
}

function countSigns(text: string): number {
  const { hasOpening, hasSelfClosing } = findTags(text);
  const hasClosing = CLOSING_TAG.test(text);
  const single = [
    hasOpening,
    hasClosing,
    hasSelfClosing,
    ENTITY.test(text),
    COMMENT.test(text),
    ATTRIBUTE.test(text),
  ];
  const double = [DOCTYPE.test(text), COMMON_TAG.test(text)];
  return single.filter(Boolean).length + 2 * double.filter(Boolean).length;
}

/** One expression with `[^>]*>` would take time that is quadratic in the number of unclosed tags. */
function findTags(text: string): { hasOpening: boolean; hasSelfClosing: boolean } {
  const lastEnd = text.lastIndexOf(">");
  let [hasOpening, hasSelfClosing] = [false, false];
  for (const { 0: name, index } of text.matchAll(TAG_NAME)) {
    const nameEnd = index + name.length;
    if (nameEnd > lastEnd) break;
    const isSpaced = /\s/.test(text[nameEnd]!);
    const end = isSpaced ? text.indexOf(">", nameEnd) : nameEnd + (text[nameEnd] === "/" ? 1 : 0);
    if (text[end] !== ">") continue;
    if (end === nameEnd || isSpaced) hasOpening = true;
    if (text[end - 1] === "/") hasSelfClosing = true;
    if (hasOpening && hasSelfClosing) break;
  }
  return { hasOpening, hasSelfClosing };
}

const ELEMENTS = new Set(
  (
    "a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption cite code col colgroup data " +
    "datalist dd del details dfn dialog div dl dt em embed fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr " +
    "html i iframe img input ins kbd label legend li link main map mark math menu meta meter nav noscript object ol optgroup option " +
    "output p param picture pre progress q rp rt ruby s samp script section select slot small source span strong style sub summary " +
    "sup svg table tbody td template textarea tfoot th thead time title tr track u ul var video wbr"
  ).split(" "),
);
/** The parser adds these where the text has none. */
const WRITTEN_WRAPPERS: Record<string, RegExp> = {
  html: /<html(?=[\s>/])/,
  head: /<head(?=[\s>/])/,
  body: /<body(?=[\s>/])/,
};

/** HTML has at least one known element, and no text outside its elements. */
export function isHtml({ text }: Subject): Finding {
  const problem = findHtmlProblem(text.trim());
  return problem === null ? { isMet: true, fact: "The output is HTML." } : { isMet: false, fact: problem };
}

function findHtmlProblem(text: string): string | null {
  if (text === "") return "The output is empty.";
  if (text.length > MAX_TEXT) return "The output is too long to be read as HTML.";
  if (/^<\?xml/i.test(text)) return "The output is XML.";
  const elements = listElements(parse(text, { sourceCodeLocationInfo: true }));
  const lower = text.toLowerCase();
  const body = elements.find(({ tagName }) => tagName === "body");
  if (body !== undefined && !isWritten(body, lower) && hasOwnText(body))
    return "The output has text outside HTML elements.";
  return elements.some((element) => isKnown(element, lower)) ? null : "The output has no known HTML element.";
}

function listElements(root: Node): Element[] {
  const elements: Element[] = [];
  for (const open: Node[] = [root]; open.length > 0; ) {
    const node = open.pop()!;
    if ("tagName" in node) elements.push(node);
    if ("childNodes" in node) for (const child of node.childNodes.toReversed()) open.push(child);
  }
  return elements;
}

const isWritten = ({ tagName, sourceCodeLocation }: Element, lower: string): boolean =>
  Boolean(sourceCodeLocation) && WRITTEN_WRAPPERS[tagName]!.test(lower);

const isKnown = (element: Element, lower: string): boolean =>
  element.tagName in WRITTEN_WRAPPERS
    ? isWritten(element, lower)
    : ELEMENTS.has(element.tagName) || element.tagName.includes("-");

const hasOwnText = ({ childNodes }: Element): boolean =>
  childNodes.some((node) => node.nodeName === "#text" && "value" in node && node.value.trim() !== "");
