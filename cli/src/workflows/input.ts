import type { ProductDetail, Variable } from "@stoa/sdk";
import { UsageError } from "../errors.ts";
import { readObject } from "../fields.ts";
import { readVariables, type VariableOptions } from "../run/variables.ts";

export interface InputOptions extends VariableOptions {
  input?: string;
}

interface InputField {
  type?: string;
  description?: string;
  default?: unknown;
  enum?: unknown[];
}

interface Step {
  provider?: string;
  do?: Step;
}

/** What the command line reads of a definition. */
interface Definition {
  input?: { properties?: Record<string, InputField>; required?: string[] };
  steps?: Step[];
}

export function parseDefinition({ id, content }: ProductDetail): Definition {
  try {
    return JSON.parse(content ?? "") as Definition;
  } catch {
    throw new UsageError(`${id} is not a workflow`, `Run a prompt: stoa run ${id}`);
  }
}

/** The providers that the steps call. */
export const listProviders = ({ steps = [] }: Definition): string[] => [
  ...new Set(
    steps.flatMap((step) => [step.provider, step.do?.provider]).filter((name) => name !== undefined),
  ),
];

/** The input of a run: a file, then single values, each read as its field's type. */
export async function readInput(
  options: InputOptions,
  { input = {} }: Definition,
): Promise<Record<string, unknown>> {
  const { properties = {}, required = [] } = input;
  const fromFile = options.input === undefined ? {} : await readObject(options.input);
  const fields = Object.entries(properties).filter(([name]) => !Object.hasOwn(fromFile, name));
  const variables = fields.map(([name, field]) => toVariable(name, field, required.includes(name)));
  const values = await readVariables(options, variables);
  const typed = Object.entries(values).map(([name, text]) => [
    name,
    toFieldValue(name, text, properties[name]),
  ]);
  return { ...fromFile, ...Object.fromEntries(typed) };
}

const toVariable = (name: string, field: InputField, required: boolean): Variable => ({
  name,
  required,
  ...(field.description !== undefined && { description: field.description }),
  ...(field.default !== undefined && { default: toText(field.default) }),
  ...(field.enum && { enum: field.enum.map(toText) }),
});

const toText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function toFieldValue(name: string, text: string, field: InputField = {}): unknown {
  if (field.type === undefined || field.type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(
      `${name} must be of the type ${field.type}, and is ${JSON.stringify(text)}`,
      `Write it as JSON: --var '${name}=…'`,
    );
  }
}
