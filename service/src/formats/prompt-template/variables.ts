import type { Variable } from "@stoa/contract";
import type { FieldProblem } from "../../core/errors.ts";
import type { Message } from "../../integrations/ai-providers/ai-provider.ts";
import { listTemplateVariables, parseTemplate } from "./template.ts";

export type CheckedVariables = { values: ReadonlyMap<string, string> } | { problems: FieldProblem[] };

export const MAX_VALUE_BYTES = 32 * 1024;
export const MAX_VALUES_BYTES = 256 * 1024;

/** For a prompt without declared variables: a name without a default is required. */
export function deriveVariables(messages: readonly Message[]): Variable[] {
  const templates = messages.map(({ content }) => parseTemplate(content));
  return listTemplateVariables(...templates).map((variable) => ({
    ...variable,
    required: variable.default === undefined,
  }));
}

/** Returns the values with defaults, or all problems. Problems never quote a value, because they appear in responses and logs. */
export function checkVariables(
  declared: readonly Variable[],
  input: Readonly<Record<string, unknown>>,
): CheckedVariables {
  const problems = [
    ...findUnknownVariables(declared, input),
    ...declared.flatMap((variable) => findVariableProblems(variable, input)),
    ...findTotalSizeProblems(declared, input),
  ];
  if (problems.length > 0) return { problems };
  return { values: new Map(declared.flatMap((variable) => toValueEntry(variable, input))) };
}

function findUnknownVariables(
  declared: readonly Variable[],
  input: Readonly<Record<string, unknown>>,
): FieldProblem[] {
  const names = new Set(declared.map(({ name }) => name));
  return Object.keys(input)
    .filter((name) => !names.has(name))
    .map((name) => toVariableProblem(name, "is no variable of this prompt"));
}

function findVariableProblems(variable: Variable, input: Readonly<Record<string, unknown>>): FieldProblem[] {
  const { name } = variable;
  if (!Object.hasOwn(input, name)) {
    return variable.required && variable.default === undefined
      ? [toVariableProblem(name, "is required")]
      : [];
  }
  const value = input[name];
  if (typeof value !== "string") return [toVariableProblem(name, "must be a string")];
  return findValueReasons(value, variable).map((reason) => toVariableProblem(name, reason));
}

function findValueReasons(value: string, { enum: allowed, maxLength }: Variable): string[] {
  if (maxLength !== undefined && isLongerThan(value, maxLength))
    return [`must have at most ${maxLength} characters`];
  if (Buffer.byteLength(value) > MAX_VALUE_BYTES)
    return [`must have at most ${MAX_VALUE_BYTES} bytes in UTF-8`];
  // PostgreSQL cannot store either, and a provider would receive another text than the checked one.
  if (!value.isWellFormed() || value.includes("\0")) return ["must be text without NUL and lone surrogates"];
  if (allowed && !allowed.includes(value)) return [`must be one of ${allowed.join(", ")}`];
  return [];
}

/** Stops at the limit: the value may be as long as a request body. */
function isLongerThan(value: string, maxLength: number): boolean {
  if (value.length <= maxLength) return false;
  let count = 0;
  for (const _ of value) if (++count > maxLength) return true;
  return false;
}

function findTotalSizeProblems(
  declared: readonly Variable[],
  input: Readonly<Record<string, unknown>>,
): FieldProblem[] {
  const texts = declared
    .filter(({ name }) => Object.hasOwn(input, name))
    .map(({ name }) => ({ name, bytes: countBytes(input[name]) }));
  const total = texts.reduce((sum, { bytes }) => sum + bytes, 0);
  if (total <= MAX_VALUES_BYTES) return [];
  const largest = texts.reduce((most, text) => (text.bytes > most.bytes ? text : most));
  return [
    toVariableProblem(
      largest.name,
      `is too long: all variables together have at most ${MAX_VALUES_BYTES} bytes in UTF-8`,
    ),
  ];
}

const countBytes = (value: unknown) => (typeof value === "string" ? Buffer.byteLength(value) : 0);

function toValueEntry(variable: Variable, input: Readonly<Record<string, unknown>>): [string, string][] {
  const value = Object.hasOwn(input, variable.name) ? input[variable.name] : variable.default;
  return typeof value === "string" ? [[variable.name, value]] : [];
}

const toVariableProblem = (name: string, reason: string): FieldProblem => ({
  field: `variables.${name}`,
  reason,
});
