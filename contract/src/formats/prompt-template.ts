/**
 * The template language `template/1` has only variables, because authors are untrusted.
 * - `{{name}}` is a value, `{{name=default}}` a value or its default, with optional spaces and tabs around the name and the `=`.
 * - A default ends at the next `}}` and may contain line breaks and `{{`. `{{name=}}` has the empty default.
 * - `\{{` is a literal `{{`. There is no other escape.
 * - Any other `{{` is literal, and parsing continues at its second brace: `{{{name}}}` is the value in single braces.
 * Rendering never parses values or defaults as templates.
 */
export type Template = readonly (string | TemplateVariable)[];

export interface TemplateVariable {
  name: string;
  default?: string;
}

/** A variable and its place in the text. */
export interface TemplateTag {
  variable: TemplateVariable;
  from: number;
  to: number;
}

/** Every text is a valid template. Linear in the length of the text. */
export function parseTemplate(text: string): Template {
  const parts: (string | TemplateVariable)[] = [];
  scan(text, {
    onText: (literal) => literal !== "" && parts.push(literal),
    onTag: ({ variable }) => parts.push(variable),
  });
  return parts;
}

/** The variables of a text with their places, for editors. */
export function listTemplateTags(text: string): TemplateTag[] {
  const tags: TemplateTag[] = [];
  scan(text, { onText: () => {}, onTag: (tag) => tags.push(tag) });
  return tags;
}

interface Visitor {
  onText: (literal: string) => void;
  onTag: (tag: TemplateTag) => void;
}

function scan(text: string, { onText, onTag }: Visitor): void {
  const lastClose = text.lastIndexOf("}}");
  let literalFrom = 0;
  let at = text.indexOf("{{");
  while (at !== -1) {
    const escaped = at > literalFrom && text[at - 1] === "\\";
    const tag = escaped ? undefined : readTag(text, at, lastClose);
    if (tag) {
      onText(text.slice(literalFrom, at));
      onTag(tag);
      literalFrom = tag.to;
    } else if (escaped) {
      onText(text.slice(literalFrom, at - 1));
      onText("{{");
      literalFrom = at + 2;
    }
    at = text.indexOf("{{", Math.max(literalFrom, at + 1));
  }
  onText(text.slice(literalFrom));
}

// Sticky and without backtracking: a failed match costs no more than the characters that it read.
const TAG_START = /\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*(\}\}|=)/y;

function readTag(text: string, at: number, lastClose: number): TemplateTag | undefined {
  TAG_START.lastIndex = at;
  const match = TAG_START.exec(text);
  if (!match) return undefined;
  const [start, name = "", end] = match;
  const afterStart = at + start.length;
  if (end === "}}") return { variable: { name }, from: at, to: afterStart };
  // Checked before the search: otherwise thousands of `{{a=` without an end would each scan the rest of the text.
  if (lastClose < afterStart) return undefined;
  const close = text.indexOf("}}", afterStart);
  const variable = { name, default: trimBlanks(text.slice(afterStart, close)) };
  return { variable, from: at, to: close + 2 };
}

function trimBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && isBlank(text[from])) from++;
  while (to > from && isBlank(text[to - 1])) to--;
  return text.slice(from, to);
}

const isBlank = (character: string | undefined) => character === " " || character === "\t";

/** Lists each variable once, in order of appearance, with its first default. */
export function listTemplateVariables(...templates: Template[]): TemplateVariable[] {
  const byName = new Map<string, TemplateVariable>();
  for (const part of templates.flat()) {
    if (typeof part === "string") continue;
    const seen = byName.get(part.name);
    if (!seen) byName.set(part.name, { ...part });
    else if (seen.default === undefined && part.default !== undefined) seen.default = part.default;
  }
  return [...byName.values()];
}

/**
 * Tags of Handlebars, Mustache, Jinja and Go templates. `{{"` is excluded: a JSON example may begin with it. Bounded,
 * and no repetition can match the brace that starts the next tag, so that a search is linear.
 */
export const FOREIGN_TAG =
  /\{\{[ \t]*[#/^>!&~@$*.\w-][^{}\n]{0,200}\}\}|\{%[^{}\n]{1,200}%\}|\{#[^{}\n]{1,200}#\}/g;
