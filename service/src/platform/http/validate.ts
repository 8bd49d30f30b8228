import { type Endpoint, fieldsOf, type Method } from "@stoa/contract";
import { z } from "zod";
import {
  type FieldProblem,
  fieldError,
  formatPath,
  MAX_PROBLEMS,
  type ValidationIssue,
} from "../../core/errors.ts";
import { mustBeStorable } from "./json-body.ts";
import { normalizeQuery, omitNulls } from "./normalize-input.ts";

/** For an endpoint without a body. */
const NO_FIELDS = z.strictObject({});

/** One issue for each field. An unknown field is named itself, not its parent. */
export function validationIssuesOf(error: z.ZodError): ValidationIssue[] {
  return error.issues.slice(0, MAX_PROBLEMS).flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      const keys = issue.keys.slice(0, MAX_PROBLEMS);
      return keys.map((key) => ({ path: [...issue.path, key], reason: "is not known here" }));
    }
    return [{ path: issue.path, reason: reasonOf(issue) }];
  });
}

const problemsOf = (error: z.ZodError, root: string): FieldProblem[] =>
  validationIssuesOf(error).map(({ path, reason }) => ({ field: formatPath(path) || root, reason }));

const IS_MISSING = new Set(["invalid_type", "invalid_value"]);

function reasonOf(issue: z.core.$ZodIssue): string {
  // Only the inner issue has the reason.
  if (issue.code === "invalid_key" && issue.issues[0]) return reasonOf(issue.issues[0]);
  if (issue.input === undefined && IS_MISSING.has(issue.code)) return "is required";
  if (issue.code === "invalid_format" && issue.format === "datetime")
    return "must be a time in ISO 8601 with its zone, such as 2026-11-22T10:00:00Z";
  // Messages of our schemas stay; zod's own begin like this.
  if (!/^(Invalid (input|option)|Too (small|big)|Unrecognized)/.test(issue.message)) return issue.message;
  return GENERIC_REASONS[issue.code]?.(issue as never) ?? issue.message;
}

const TYPE_NAMES: Record<string, string> = {
  array: "an array",
  boolean: "true or false",
  int: "a whole number",
  number: "a number",
  object: "an object",
  record: "an object",
  string: "a string",
};
const UNITS: Record<string, [one: string, many: string]> = {
  array: ["item", "items"],
  string: ["character", "characters"],
};

/** `at least 1 item` of a list, `at least 1` of a number. */
function bound(words: string, origin: string, count: number | bigint): string {
  const [one, many] = UNITS[origin] ?? [];
  if (!one) return `must be ${words} ${count}`;
  return `must have ${words} ${count} ${Number(count) === 1 ? one : many}`;
}

type Issue<C extends z.core.$ZodIssue["code"]> = Extract<z.core.$ZodIssue, { code: C }>;

const GENERIC_REASONS: { [C in string]?: (issue: never) => string } = {
  invalid_type: ({ expected }: Issue<"invalid_type">) => `must be ${TYPE_NAMES[expected] ?? expected}`,
  invalid_value: ({ values }: Issue<"invalid_value">) =>
    values.length === 1 ? `must be ${String(values[0])}` : `must be one of ${values.map(String).join(", ")}`,
  too_big: ({ origin, maximum, inclusive }: Issue<"too_big">) =>
    bound(inclusive ? "at most" : "less than", origin, maximum),
  too_small: ({ origin, minimum, inclusive }: Issue<"too_small">) =>
    bound(inclusive ? "at least" : "more than", origin, minimum),
};

/** Parses a value, or throws 400 with all wrong fields; `root` names the value itself. */
export function parse<S extends z.ZodType>(schema: S, value: unknown, root: string): z.output<S> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  throw fieldError("INVALID_REQUEST", problemsOf(result.error, root));
}

/** Like `parse`, for a new resource: `null` for an optional field counts as absent. */
export const parseNew = <S extends z.ZodType>(schema: S, value: unknown, root: string): z.output<S> =>
  parse(schema, omitNulls(schema, value), root);

/** Their bodies are complete, so `null` clears nothing. */
const WHOLE_BODIES: ReadonlySet<Method> = new Set(["POST", "PUT"]);

export interface RawInput {
  params: unknown;
  query: Record<string, unknown>;
  body: unknown;
}

const MAX_CACHED_QUERIES = 500;
const MAX_CACHED_CHARACTERS = 500;
/** Recent valid queries, parsed: the same lists are requested again and again. */
const validQueries = new Map<string, Record<string, unknown>>();

function parseQuery(endpoint: Endpoint, query: Record<string, unknown>) {
  const text = endpoint.name + JSON.stringify(query);
  const known = validQueries.get(text);
  if (known) return known;
  mustBeStorable(query, "query");
  const parsed = Object.freeze(parse(endpoint.query, normalizeQuery(endpoint, query), "query"));
  if (validQueries.size >= MAX_CACHED_QUERIES) validQueries.clear();
  if (text.length <= MAX_CACHED_CHARACTERS) validQueries.set(text, parsed);
  return parsed;
}

export const validatePath = (endpoint: Endpoint, params: unknown) => parse(endpoint.params, params, "path");

/** Parses path, query and body for the handler. */
export function validate(endpoint: Endpoint, raw: RawInput) {
  // An action has no body; a `null` that was sent is an error.
  const body = raw.body === undefined ? {} : raw.body;
  return {
    params: validatePath(endpoint, raw.params),
    query: parseQuery(endpoint, raw.query),
    body: (WHOLE_BODIES.has(endpoint.method) ? parseNew : parse)(
      fieldsOf(endpoint) ?? NO_FIELDS,
      body,
      "body",
    ),
  };
}
