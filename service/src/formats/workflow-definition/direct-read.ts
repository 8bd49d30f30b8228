import { isObject } from "./issue-order.ts";

interface ReadValues {
  input: unknown;
  steps: Readonly<Record<string, { output: unknown }>>;
}

/** `input.name` and `steps.id.output`. */
const READ = /^(?:input\.(?<name>[A-Za-z_]\w*)|steps\.(?<step>[A-Za-z_]\w*)\.output)$/;
/** CEL refuses them as names. */
const RESERVED = new Set(
  "as break const continue else false for function if import in let loop namespace null package return true var void while".split(
    " ",
  ),
);
/** Far below the limits of an evaluation. */
const MAX_CHARACTERS = 100_000;

/**
 * The text that an expression reads when it does nothing else, as most expressions do: its evaluation in a thread would take some
 * hundred times as long. undefined: it must be evaluated.
 */
export function readText(expression: string, { input, steps }: ReadValues): string | undefined {
  const { name, step } = READ.exec(expression)?.groups ?? {};
  if (step !== undefined) return usableText(step, Object.hasOwn(steps, step) && steps[step]?.output);
  if (name === undefined || !isObject(input) || !Object.hasOwn(input, name)) return undefined;
  return usableText(name, input[name]);
}

const usableText = (name: string, value: unknown): string | undefined =>
  typeof value === "string" && value.length <= MAX_CHARACTERS && !value.includes("\0") && !RESERVED.has(name)
    ? value.toWellFormed()
    : undefined;
