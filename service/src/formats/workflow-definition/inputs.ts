import { VARIABLE_NAME, type Variable } from "@stoa/contract";
import type { FieldProblem, ValidationIssue } from "../../core/errors.ts";
import { isObject, type Path, toProblem } from "./issue-order.ts";
import { parseJsonText } from "./json-parser.ts";
import {
  describeTypes,
  findDefaultIssues,
  findSchemaIssues,
  type JsonSchema,
  listTypes,
  type Type,
  validateValue,
} from "./json-schema.ts";

const MAX_INPUTS = 100;
const MAX_DESCRIPTION = 500;
const MAX_TEXT = 32_768;
const MAX_CHOICES = 100;
const MAX_CHOICE = 1_000;

/** What keeps a schema from being that of a workflow's input: an object whose fields can be shown as a form. */
export function findInputIssues(input: unknown, path: Path): ValidationIssue[] {
  const issues = findSchemaIssues(input, path);
  if (!isObject(input)) return issues;
  // One that is refused would fail each run that relies on it; the default of an output is nothing but a note.
  if (issues.length === 0) issues.push(...findDefaultIssues(input, path));
  if (input["type"] !== "object") issues.push({ path: [...path, "type"], reason: 'must be "object"' });
  const properties = isObject(input["properties"]) ? input["properties"] : {};
  const names = Object.keys(properties);
  if (names.length > MAX_INPUTS) {
    issues.push({ path: [...path, "properties"], reason: `must have at most ${MAX_INPUTS} inputs` });
  }
  for (const name of names) {
    if (!VARIABLE_NAME.test(name)) {
      issues.push({ path: [...path, "properties", name], reason: "must have a name such as topic" });
    }
  }
  return [...issues, ...findRequiredIssues(input["required"], properties, path)];
}

function findRequiredIssues(
  required: unknown,
  properties: Record<string, unknown>,
  path: Path,
): ValidationIssue[] {
  if (!Array.isArray(required)) return [];
  return required.flatMap((name, index) =>
    typeof name === "string" && !Object.hasOwn(properties, name)
      ? [{ path: [...path, "required", index], reason: `names ${name}, which properties lacks` }]
      : [],
  );
}

const COMPOSITION_KEYWORDS = ["$ref", "allOf", "anyOf", "oneOf"];

/**
 * The names that expressions may read of `input`, or null where the schema leaves them open: it names none, allows
 * others by name or type, or has them from elsewhere. JSON Schema allows others unless told not to; here an author
 * who lists some has to say so, because a misspelt name is far more common.
 */
export function listInputNames(input: unknown): ReadonlySet<string> | null {
  if (!isObject(input) || COMPOSITION_KEYWORDS.some((keyword) => keyword in input)) return null;
  const { properties, additionalProperties: others } = input;
  const names = new Set(isObject(properties) ? Object.keys(properties) : []);
  const isOpen = others === undefined ? names.size === 0 : others !== false;
  return isOpen ? null : names;
}

/**
 * The inputs as the product's `variables` show them to everybody. There all values are strings: of an input of
 * another type, default and choices are JSON text, and its description ends with the type.
 */
export function toVariables(input: JsonSchema): Variable[] {
  return Object.entries(input.properties ?? {}).map(([name, schema]) =>
    toVariable(name, typeof schema === "boolean" ? {} : schema, input.required?.includes(name) ?? false),
  );
}

function toVariable(name: string, schema: JsonSchema, isRequired: boolean): Variable {
  const description = toDescription(schema);
  const choices = schema.enum?.map(toText);
  const standard = schema.default === undefined ? undefined : toText(schema.default);
  return {
    name,
    required: isRequired && standard === undefined,
    ...(description && { description }),
    ...(standard !== undefined && standard.length <= MAX_TEXT && { default: standard }),
    ...(choices && areChoicesShort(choices) && { enum: choices }),
    ...(schema.maxLength && schema.maxLength <= MAX_TEXT && { maxLength: schema.maxLength }),
  };
}

const toText = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
const areChoicesShort = (choices: string[]) =>
  choices.length <= MAX_CHOICES && choices.every((choice) => choice.length <= MAX_CHOICE);

function toDescription({ type, title, description }: JsonSchema): string {
  const allowed = type === undefined ? [] : [type].flat();
  const isText = allowed.length === 0 || (allowed.length === 1 && allowed[0] === "string");
  const kind = isText ? "" : `(${describeTypes(allowed)})`;
  const words = (description ?? title ?? "").trim().slice(0, MAX_DESCRIPTION - kind.length - 1);
  return [words.toWellFormed(), kind].filter(Boolean).join(" ");
}

/** The `input` of a definition; an empty one where the text holds none. */
function parseInputSchema(definition: string): JsonSchema {
  const read = parseJsonText(definition);
  const input = "value" in read && isObject(read.value) ? read.value["input"] : null;
  return isObject(input) ? input : {};
}

/** The types that each input of a definition accepts, by its name. */
export const parseInputTypes = (definition: string): Map<string, readonly Type[]> =>
  new Map(
    Object.entries(parseInputSchema(definition).properties ?? {}).map(([name, schema]) => [
      name,
      listTypes(schema),
    ]),
  );

/** Whether a run of a definition refuses inputs that the definition does not name. */
export const isClosedInput = (definition: string): boolean =>
  parseInputSchema(definition).additionalProperties === false;

export type CheckedInput = { input: Record<string, unknown> } | { problems: FieldProblem[] };

/** What a run begins with: what was given, and the defaults of the rest. */
export function checkInput(schema: JsonSchema, given: Readonly<Record<string, unknown>>): CheckedInput {
  const input = { ...readDefaults(schema), ...given };
  const issues = validateValue(schema, input);
  return issues.length > 0 ? { problems: issues.map((issue) => toProblem("input", issue)) } : { input };
}

function readDefaults({ properties = {} }: JsonSchema): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(properties).flatMap(([name, schema]) =>
      typeof schema === "boolean" || schema.default === undefined ? [] : [[name, schema.default]],
    ),
  );
}
