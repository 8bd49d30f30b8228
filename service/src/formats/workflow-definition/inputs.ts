import { VARIABLE_NAME, type Variable } from "@stoa/contract";
import {
  describeTypes,
  findDefaultIssues,
  findSchemaIssues,
  type JsonSchema,
  listTypes,
  type Type,
  validateValue,
} from "@stoa/evaluation/json-schema";
import type { FieldProblem, ValidationIssue } from "../../core/errors.ts";
import { isObject, type Path, toProblem } from "./issue-order.ts";
import { parseJsonText } from "./json-parser.ts";

const MAX_INPUTS = 100;
const MAX_DESCRIPTION = 500;
const MAX_TEXT = 32_768;
const MAX_CHOICES = 100;
const MAX_CHOICE = 1_000;

/** The input must be an object whose fields can be shown as a form. */
export function findInputIssues(input: unknown, path: Path): ValidationIssue[] {
  const issues = findSchemaIssues(input, path);
  if (!isObject(input)) return issues;
  // A default that its schema refuses would fail each run that uses it. The default of an output is only documentation.
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
 * null: the schema allows unlisted names. JSON Schema allows them by default; here a schema with properties must allow them explicitly,
 * because a misspelt name is far more common.
 */
export function listInputNames(input: unknown): ReadonlySet<string> | null {
  if (!isObject(input) || COMPOSITION_KEYWORDS.some((keyword) => keyword in input)) return null;
  const { properties, additionalProperties: others } = input;
  const names = new Set(isObject(properties) ? Object.keys(properties) : []);
  const isOpen = others === undefined ? names.size === 0 : others !== false;
  return isOpen ? null : names;
}

/**
 * The product's public `variables` are strings. For other types, default and choices are JSON text, and the description ends with the
 * type.
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
  const summary = (description ?? title ?? "").trim().slice(0, MAX_DESCRIPTION - kind.length - 1);
  return [summary.toWellFormed(), kind].filter(Boolean).join(" ");
}

/** Empty if the text is not a definition. */
function parseInputSchema(definition: string): JsonSchema {
  const read = parseJsonText(definition);
  const input = "value" in read && isObject(read.value) ? read.value["input"] : null;
  return isObject(input) ? input : {};
}

export const parseInputTypes = (definition: string): Map<string, readonly Type[]> =>
  new Map(
    Object.entries(parseInputSchema(definition).properties ?? {}).map(([name, schema]) => [
      name,
      listTypes(schema),
    ]),
  );

/** Whether a run refuses unknown inputs. */
export const isClosedInput = (definition: string): boolean =>
  parseInputSchema(definition).additionalProperties === false;

export type CheckedInput = { input: Record<string, unknown> } | { problems: FieldProblem[] };

/** Adds the defaults, then validates. */
export function checkInput(schema: JsonSchema, values: Readonly<Record<string, unknown>>): CheckedInput {
  const input = { ...readDefaults(schema), ...values };
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
