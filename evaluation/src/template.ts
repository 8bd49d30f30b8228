/** The one template that a value may have: `{{name}}`. */
const VARIABLE = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*\}\}/g;
/** What promptfoo's template language starts with. */
const TEMPLATE = /\{\{|\{%|\{#/;
/** Words of promptfoo's template language, which it never reads as variables. */
const RESERVED = new Set("true false none null and or not in is if else".split(" "));

/**
 * Replaces each `{{name}}` by the input of that name, as promptfoo does: null and absent inputs become nothing.
 * `checkTemplate` refuses absent inputs and lists before a case is stored.
 */
export const renderTemplate = (text: string, input: Record<string, unknown>): string =>
  text.replace(VARIABLE, (_, name: string) => String((Object.hasOwn(input, name) ? input[name] : "") ?? ""));

/** Why this text cannot be rendered with this input, or null. */
export function checkTemplate(text: string, input: Record<string, unknown>): string | null {
  if (TEMPLATE.test(text.replace(VARIABLE, "")))
    return "has a template expression; only {{variable}} is supported";
  for (const [, name = ""] of text.matchAll(VARIABLE)) {
    if (RESERVED.has(name))
      return `names {{${name}}}, which is a word of promptfoo's templates; rename the variable`;
    if (!Object.hasOwn(input, name)) return `names the variable ${name}, which is not in the case's input`;
    if (typeof input[name] === "object" && input[name] !== null)
      return `names the variable ${name}, which is not text, a number or a boolean`;
  }
  return null;
}

export const hasTemplate = (text: string): boolean => TEMPLATE.test(text);

/** Texts and the texts of a list are templates; the other values are not. */
export function renderValue(value: unknown, input: Record<string, unknown>): unknown {
  const render = (item: unknown) => (typeof item === "string" ? renderTemplate(item, input) : item);
  return Array.isArray(value) ? value.map(render) : render(value);
}
