import type { Endpoint } from "@stoa/contract";
import { z } from "zod";
import { type Fault, type FieldProblem, fieldError, toPath } from "../errors.ts";
import { mustBeStorable } from "./json-body.ts";

/** Of an endpoint that takes no body: an empty object passes, any field is unknown. */
const NO_FIELDS = z.strictObject({});

/** A fault per wrong field, in the words of the schema; an unknown field is named itself, not its parent. */
export function faultsOf(error: z.ZodError): Fault[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({ path: [...issue.path, key], reason: "is not known here" }));
    }
    return [{ path: issue.path, reason: reasonOf(issue) }];
  });
}

const problemsOf = (error: z.ZodError, root: string): FieldProblem[] =>
  faultsOf(error).map(({ path, reason }) => ({ field: toPath(path) || root, reason }));

const IS_MISSING = new Set(["invalid_type", "invalid_value"]);

function reasonOf(issue: z.core.$ZodIssue): string {
  // Of a name that is not allowed only the inner issue says why.
  if (issue.code === "invalid_key" && issue.issues[0]) return reasonOf(issue.issues[0]);
  if (issue.input === undefined && IS_MISSING.has(issue.code)) return "is required";
  if (issue.code === "invalid_format" && issue.format === "datetime")
    return "must be a time in ISO 8601 with its zone, such as 2026-11-22T10:00:00Z";
  if (issue.code === "invalid_type" && issue.expected === "record") return "must be an object";
  return issue.message.replace(/^(Invalid (input|option)|Too (small|big)): /, "");
}

/** What the schema makes of a value; else 400 with every field named, and `root` where it is no field's fault. */
export function parse<S extends z.ZodType>(schema: S, value: unknown, root: string): z.output<S> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  throw fieldError("INVALID_REQUEST", problemsOf(result.error, root));
}

export interface RawInput {
  params: unknown;
  query: Record<string, unknown>;
  body: unknown;
}

const MAX_KEPT_QUERIES = 500;
const MAX_KEPT_CHARACTERS = 500;
/** Queries that were found right lately, as they were parsed: the same lists are asked for again and again. */
const rightQueries = new Map<string, Record<string, unknown>>();

function parseQuery({ name, query: schema }: Endpoint, query: Record<string, unknown>) {
  const text = name + JSON.stringify(query);
  const known = rightQueries.get(text);
  if (known) return known;
  mustBeStorable(query, "query");
  const parsed = Object.freeze(parse(schema, query, "query"));
  if (rightQueries.size >= MAX_KEPT_QUERIES) rightQueries.clear();
  if (text.length <= MAX_KEPT_CHARACTERS) rightQueries.set(text, parsed);
  return parsed;
}

export const validatePath = (endpoint: Endpoint, params: unknown) => parse(endpoint.params, params, "path");

/** Path, query and body as the endpoint's handler gets them; anything else is 400 with every field named. */
export function validate(endpoint: Endpoint, raw: RawInput) {
  // An absent body is that of an action; a `null` that was sent is no object.
  const body = raw.body === undefined ? {} : raw.body;
  return {
    params: validatePath(endpoint, raw.params),
    query: parseQuery(endpoint, raw.query),
    body: parse(endpoint.body ?? NO_FIELDS, body, "body"),
  };
}
