import type { Variable } from "@stoa/sdk";
import type { Command } from "commander";
import { repeated } from "../command.ts";
import { UsageError } from "../errors.ts";
import { readText, splitPair } from "../fields.ts";
import { withoutControls } from "../output.ts";
import { askText, choose, isInteractive } from "../prompts.ts";

export interface VariableOptions {
  var?: string[];
  varFile?: string[];
}

export const variableOptions = (command: Command): Command =>
  command
    .option("--var <name=value>", "a variable; repeat it for others", repeated)
    .option("--var-file <name=path>", "a variable from a file; - is standard input", repeated);

/** The values of a product's variables. Those that are missing are asked for in a terminal. */
export async function readVariables(
  options: VariableOptions,
  variables: readonly Variable[],
): Promise<Record<string, string>> {
  const values = await readGiven(options);
  const missing = variables.filter((variable) => isNeeded(variable) && !Object.hasOwn(values, variable.name));
  if (missing.length === 0) return values;
  if (!isInteractive()) throw missingError(missing);
  for (const variable of variables) {
    if (Object.hasOwn(values, variable.name)) continue;
    const answer = await askForVariable(variable);
    if (answer !== "") values[variable.name] = answer;
  }
  return values;
}

const isNeeded = ({ required, default: preset }: Variable) => required && preset === undefined;

async function readGiven(options: VariableOptions): Promise<Record<string, string>> {
  const values: Record<string, string> = Object.create(null);
  for (const text of options.var ?? []) {
    const [name, value] = splitPair(text, "--var");
    values[name] = value;
  }
  for (const text of options.varFile ?? []) {
    const [name, path] = splitPair(text, "--var-file");
    values[name] = await readText(path);
  }
  return values;
}

function missingError(missing: readonly Variable[]): UsageError {
  const lines = missing.map(
    ({ name, description }) => `\n  ${name}${description ? `: ${withoutControls(description)}` : ""}`,
  );
  const options = missing.map(({ name }) => `--var ${name}=…`).join(" ");
  return new UsageError(`Variables are missing:${lines.join("")}`, `Give them: ${options}`);
}

function askForVariable(variable: Variable): Promise<string> {
  const { name, description, enum: choices, default: preset } = variable;
  const hints = [description, isNeeded(variable) ? "required" : "optional"].filter((hint) => hint);
  const message = withoutControls(`${name} (${hints.join("; ")})`);
  const instead = `Give it by --var ${name}=…`;
  if (!choices) return askText(message, instead, preset);
  const optional = isNeeded(variable) ? [] : [{ value: "", label: "(none)" }];
  return choose(
    message,
    [...choices.map((value) => ({ value, label: withoutControls(value) })), ...optional],
    instead,
  );
}
