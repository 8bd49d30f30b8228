import {
  type FieldProblem,
  fieldError,
  formatPath,
  ruleViolation,
  type ValidationIssue,
} from "../../core/errors.ts";
import { type Message, messageRoles } from "../../integrations/ai-providers/ai-provider.ts";

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

export type TemplateValues = ReadonlyMap<string, string> | Readonly<Record<string, string>>;

export type ContentFormat = "text" | "messages";

// Sticky and without backtracking: a failed match costs no more than the characters that it read.
const TAG_START = /\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,63})[ \t]*(\}\}|=)/y;

/** Every text is a valid template. Linear in the length of the text. */
export function parseTemplate(text: string): Template {
  const parts: (string | TemplateVariable)[] = [];
  const lastClose = text.lastIndexOf("}}");
  let literalFrom = 0;
  let at = text.indexOf("{{");
  while (at !== -1) {
    const escaped = at > literalFrom && text[at - 1] === "\\";
    const tag = escaped ? undefined : readTag(text, at, lastClose);
    if (tag) {
      pushText(parts, text.slice(literalFrom, at));
      parts.push(tag.variable);
      literalFrom = tag.end;
    } else if (escaped) {
      pushText(parts, text.slice(literalFrom, at - 1));
      parts.push("{{");
      literalFrom = at + 2;
    }
    at = text.indexOf("{{", Math.max(literalFrom, at + 1));
  }
  pushText(parts, text.slice(literalFrom));
  return parts;
}

function pushText(parts: (string | TemplateVariable)[], text: string): void {
  if (text !== "") parts.push(text);
}

function readTag(
  text: string,
  at: number,
  lastClose: number,
): { variable: TemplateVariable; end: number } | undefined {
  TAG_START.lastIndex = at;
  const match = TAG_START.exec(text);
  if (!match) return undefined;
  const [start, name = "", end] = match;
  const afterStart = at + start.length;
  if (end === "}}") return { variable: { name }, end: afterStart };
  // Checked before the search: otherwise thousands of `{{a=` without an end would each scan the rest of the text.
  if (lastClose < afterStart) return undefined;
  const close = text.indexOf("}}", afterStart);
  return { variable: { name, default: trimBlanks(text.slice(afterStart, close)) }, end: close + 2 };
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

/** A variable without a value gets the default at its place, else the empty string. */
export const renderTemplate = (template: Template, values: TemplateValues): string =>
  renderParts(template, values).join("");

const renderParts = (template: Template, values: TemplateValues): string[] =>
  template.map((part) =>
    typeof part === "string" ? part : (ownValue(values, part.name) ?? part.default ?? ""),
  );

function ownValue(values: TemplateValues, name: string): string | undefined {
  if (values instanceof Map) return values.get(name);
  // `{{constructor}}` must not reach a prototype.
  return Object.hasOwn(values, name) ? (values as Readonly<Record<string, string>>)[name] : undefined;
}

/** Of all messages together. A long value that occurs 20,000 times would otherwise produce gigabytes. */
const MAX_PROMPT_CHARACTERS = 4_000_000;

/** Values cannot change the roles. Throws VALIDATION_ERROR for `variables` if the prompt becomes too long. */
export function renderMessages(messages: readonly Message[], values: TemplateValues): Message[] {
  let left = MAX_PROMPT_CHARACTERS;
  return messages.map(({ role, content }) => {
    const parts = renderParts(parseTemplate(content), values);
    for (const { length } of parts) left -= length;
    if (left >= 0) return { role, content: parts.join("") };
    throw ruleViolation("variables", `make a prompt of more than ${MAX_PROMPT_CHARACTERS} characters`);
  });
}

/** `text` is one user message, `messages` a JSON list. Throws INVALID_REQUEST with every issue and its path, such as `content[1].role`. */
export function parseMessages(contentFormat: ContentFormat, content: string): Message[] {
  if (contentFormat === "text") return [{ role: "user", content }];
  const checked = checkMessages(parseJson(content), "content");
  if ("problems" in checked) throw fieldError("INVALID_REQUEST", checked.problems);
  return checked.messages;
}

function parseJson(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    // The parser's message would quote the prompt.
    throw fieldError("INVALID_REQUEST", [{ field: "content", reason: "must be a JSON array of messages" }]);
  }
}

export type CheckedMessages = { messages: Message[] } | { problems: FieldProblem[] };

/** `field`: the path of the list in the request. */
export function checkMessages(list: unknown, field: string): CheckedMessages {
  if (!Array.isArray(list)) return { problems: [{ field, reason: "must be a JSON array of messages" }] };
  const problems = list.flatMap((message, index) => findMessageProblems(message, `${field}[${index}]`));
  if (problems.length > 0) return { problems };
  const messages = list.map(({ role, content }: Message) => ({ role, content }));
  const issues = findConversationIssues(messages);
  if (issues.length === 0) return { messages };
  return { problems: issues.map(({ path, reason }) => ({ field: formatPath([field, ...path]), reason })) };
}

function findMessageProblems(message: unknown, field: string): FieldProblem[] {
  if (typeof message !== "object" || message === null || Array.isArray(message)) {
    return [{ field, reason: "must be an object with role and content" }];
  }
  const { role, content, ...others } = message as Record<string, unknown>;
  const problems = Object.keys(others).map((name) => ({ field: `${field}.${name}`, reason: "is unknown" }));
  if (!messageRoles.some((known) => known === role)) {
    problems.push({ field: `${field}.role`, reason: `must be one of ${messageRoles.join(", ")}` });
  }
  if (typeof content !== "string") problems.push({ field: `${field}.content`, reason: "must be a string" });
  else if (content === "") problems.push({ field: `${field}.content`, reason: "must not be empty" });
  return problems;
}

/** Rules of all providers: system messages first, then at least one user message. */
export function findConversationIssues(messages: readonly Message[]): ValidationIssue[] {
  if (!messages.some(({ role }) => role === "user")) {
    return [{ path: [], reason: "must hold at least one user message" }];
  }
  return messages.flatMap(({ role }, index) =>
    role === "system" && index > 0 && messages[index - 1]?.role !== "system"
      ? [{ path: [index, "role"], reason: "a system message must come before all others" }]
      : [],
  );
}
