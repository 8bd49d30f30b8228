import { listTemplateVariables, parseTemplate } from "@stoa/contract/prompt-template";
import type { Variable } from "@stoa/sdk";
import { MOST_VARIABLES } from "./content-limits.ts";

export interface Message {
  role: string;
  content: string;
}

export const ROLES = ["system", "user", "assistant"] as const;

/** The messages of a prompt; null: the text is no list of messages. */
export function readMessages(content: string): Message[] | null {
  try {
    const parsed: unknown = JSON.parse(content);
    const isMessage = (one: unknown): one is Message =>
      typeof one === "object" &&
      one !== null &&
      "role" in one &&
      "content" in one &&
      typeof one.content === "string";
    return Array.isArray(parsed) && parsed.every(isMessage) ? parsed : null;
  } catch {
    return null;
  }
}

/** The texts of a prompt that are templates. */
export const templatesOf = (content: string, format: "text" | "messages"): string[] =>
  format === "text" ? [content] : (readMessages(content)?.map((message) => message.content) ?? []);

/** As the service derives them: without a default, a value is required. */
export const deriveVariables = (content: string, format: "text" | "messages"): Variable[] =>
  listTemplateVariables(...templatesOf(content, format).map(parseTemplate)).map((variable) => ({
    ...variable,
    required: variable.default === undefined,
  }));

const DETAILS = ["description", "enum", "maxLength"] as const;

/** Whether its author has written something about it that the content does not have. */
export const hasDetails = (variable: Variable): boolean =>
  DETAILS.some((name) => variable[name] !== undefined);

/**
 * The variables of a prompt in the order of the content, with what their author wrote about them. One that the content does not use
 * any more stays while it has details, because its name may only be half typed. `before`: those of the content before the change.
 * Of too many, one more than the service takes: a form with thousands of fields would block the page.
 */
export function reconcileVariables(
  content: string,
  format: "text" | "messages",
  declared: Variable[],
  before: Variable[] = [],
): Variable[] {
  if (format === "messages" && readMessages(content) === null) return declared;
  const derivedOnes = deriveVariables(content, format).slice(0, MOST_VARIABLES + 1);
  const used = derivedOnes.map((derived) => {
    const known = declared.find(({ name }) => name === derived.name);
    const old = before.find(({ name }) => name === derived.name);
    return known ? withDefault(known, derived, old) : derived;
  });
  const names = new Set(used.map(({ name }) => name));
  return [...used, ...declared.filter((variable) => !names.has(variable.name) && hasDetails(variable))];
}

/** A default in the content comes before one of the form, and goes when it is deleted there. */
function withDefault(known: Variable, derived: Variable, before: Variable | undefined): Variable {
  const { default: standard, ...rest } = known;
  if (derived.default !== undefined)
    return derived.default === standard ? known : { ...known, default: derived.default, required: false };
  const isGone = before?.default !== undefined && before.default === standard;
  return isGone ? { ...rest, required: true } : known;
}
