import { isObject } from "./workflow-document.ts";

/** What an expression may read at its place, with the values of the last run as far as they are known. */
export interface ExpressionNames {
  /** The properties of the input's schema, each with its type. */
  inputs: Readonly<Record<string, string>>;
  /** Ids of the steps that have ended before. */
  steps: readonly string[];
  inMap: boolean;
  values: { input?: unknown; steps: Readonly<Record<string, unknown>>; item?: unknown };
}

export interface Suggestion {
  /** What stands in the expression from `from` on when it is chosen. */
  insert: string;
  label: string;
  /** Type or value. */
  detail: string;
}

export interface Suggestions {
  from: number;
  items: Suggestion[];
}

const MAX_SUGGESTIONS = 12;
const CHAIN = /[A-Za-z_][\w]*(?:\.[A-Za-z_][\w]*|\[\d+\]|\.)*$/;

const FUNCTIONS: [name: string, detail: string][] = [
  ["size", "length of a list or text"],
  ["string", "as text"],
  ["int", "as whole number"],
  ["double", "as number"],
  ["has", "whether a field exists"],
];

/** For the name that ends at the caret. */
export function suggestAt(expression: string, caret: number, names: ExpressionNames): Suggestions {
  const chain = CHAIN.exec(expression.slice(0, caret))?.[0] ?? "";
  const parts = chain.split(".");
  const typed = parts.at(-1) ?? "";
  const from = caret - typed.length;
  const members = parts.length <= 1 ? rootsOf(names) : membersOf(parts.slice(0, -1), names);
  const items = members.filter(
    ({ label }) => label.toLowerCase().startsWith(typed.toLowerCase()) && label !== typed,
  );
  return { from, items: items.slice(0, MAX_SUGGESTIONS) };
}

const suggestion = (label: string, detail: string, insert = label): Suggestion => ({ label, detail, insert });

function rootsOf({ steps, inMap, inputs, values }: ExpressionNames): Suggestion[] {
  return [
    suggestion("input", `${Object.keys(inputs).length} inputs`, "input."),
    ...(steps.length > 0 ? [suggestion("steps", steps.join(", "), "steps.")] : []),
    ...(inMap ? [suggestion("item", describe(values.item)), suggestion("index", "from 0")] : []),
    ...FUNCTIONS.map(([name, detail]) => suggestion(name, detail, `${name}(`)),
  ];
}

function membersOf([root, ...path]: string[], names: ExpressionNames): Suggestion[] {
  if (root === "input" && path.length === 0)
    return Object.entries(names.inputs).map(([name, type]) =>
      suggestion(name, describeOr(fieldOf(names.values.input, name), type)),
    );
  if (root === "steps" && path.length === 0)
    return names.steps.map((id) => suggestion(id, describe(names.values.steps[id]), `${id}.output`));
  if (root === "steps" && path.length === 1)
    return [suggestion("output", describe(names.values.steps[path[0] ?? ""]))];
  return fieldsIn(followPath(root ?? "", path, names));
}

function followPath(root: string, path: string[], { values }: ExpressionNames): unknown {
  const [start, rest] =
    root === "steps"
      ? [values.steps[path[0] ?? ""], path.slice(2)]
      : [root === "item" ? values.item : values.input, path];
  return rest.flatMap(splitIndexes).reduce<unknown>(fieldOf, start);
}

/** `parts[0]` is two steps. */
const splitIndexes = (part: string): string[] => part.split(/[[\]]/).filter((text) => text !== "");

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;

const NAME = /^[A-Za-z_]\w*$/;

function fieldsIn(value: unknown): Suggestion[] {
  if (!isObject(value)) return Array.isArray(value) ? [suggestion("map", "each item", "map(x, x")] : [];
  return Object.entries(value)
    .filter(([name]) => NAME.test(name))
    .map(([name, one]) => suggestion(name, describe(one)));
}

const describeOr = (value: unknown, type: string): string => (value === undefined ? type : describe(value));

const MAX_SHOWN = 24;

/** A value in few words. */
export function describe(value: unknown): string {
  if (value === undefined) return "";
  if (Array.isArray(value)) return `list of ${value.length}`;
  if (isObject(value)) return `{${Object.keys(value).slice(0, 3).join(", ")}}`;
  const text = typeof value === "string" ? `“${value}”` : JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
