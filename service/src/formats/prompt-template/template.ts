import { parseTemplate, type Template } from "@stoa/contract";
import {
  type FieldProblem,
  fieldError,
  formatPath,
  ruleViolation,
  type ValidationIssue,
} from "../../core/errors.ts";
import { type Message, messageRoles } from "../../integrations/ai-providers/ai-provider.ts";

/** In the contract, so that clients find the same variables as the service. */
export { listTemplateVariables, parseTemplate, type Template } from "@stoa/contract";

export type TemplateValues = ReadonlyMap<string, string> | Readonly<Record<string, string>>;

export type ContentFormat = "text" | "messages";

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
