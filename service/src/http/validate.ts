import type { Endpoint } from "@stoa/contract";
import { z } from "zod";
import { type FieldProblem, fieldError } from "../errors.ts";
import { mustBeStorable } from "./json-body.ts";

/** Of an endpoint that takes no body: an empty object passes, any field is unknown. */
const NO_FIELDS = z.strictObject({});

const toPath = (path: PropertyKey[]): string =>
  path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${String(part)}` : String(part),
    "",
  );

/** A problem per wrong field, in the words of the schema; an unknown field is named itself, not its parent. */
function problemsOf(error: z.ZodError, root: string): FieldProblem[] {
  return error.issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({ field: toPath([...issue.path, key]), reason: "is not known here" }));
    }
    return [{ field: toPath(issue.path) || root, reason: reasonOf(issue) }];
  });
}

const IS_MISSING = new Set(["invalid_type", "invalid_value"]);

function reasonOf(issue: z.core.$ZodIssue): string {
  if (issue.input === undefined && IS_MISSING.has(issue.code)) return "is required";
  return issue.message.replace(/^(Invalid (input|option)|Too (small|big)): /, "");
}

function parse<S extends z.ZodType>(schema: S, value: unknown, root: string): z.output<S> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  throw fieldError("INVALID_REQUEST", problemsOf(result.error, root));
}

export interface RawInput {
  params: unknown;
  query: Record<string, unknown>;
  body: unknown;
}

export const validatePath = (endpoint: Endpoint, params: unknown) => parse(endpoint.params, params, "path");

/** Path, query and body as the endpoint's handler gets them; anything else is 400 with every field named. */
export function validate(endpoint: Endpoint, raw: RawInput) {
  mustBeStorable(raw.query, "query");
  // An absent body is that of an action; a `null` that was sent is no object.
  const body = raw.body === undefined ? {} : raw.body;
  return {
    params: validatePath(endpoint, raw.params),
    query: parse(endpoint.query, raw.query, "query"),
    body: parse(endpoint.body ?? NO_FIELDS, body, "body"),
  };
}
