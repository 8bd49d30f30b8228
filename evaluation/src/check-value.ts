import { parseList } from "./parse-list.ts";
import { isRecord, type Report, reportBelow, reportUnknown } from "./problems.ts";
import { compileRegex } from "./regex.ts";
import type { AssertionType } from "./test-case.ts";

/** Checks the rendered value of an assertion; `undefined` if it is absent. */
type ValueCheck = (value: unknown, report: Report, checkSchema: SchemaCheck) => void;

/** Problems of a JSON Schema itself, none if it can be used. */
export type SchemaCheck = (schema: unknown) => string[];

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";
const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

const required: ValueCheck = (value, report) => {
  if (value === undefined) report([], "is required");
};

const none: ValueCheck = (value, report) => {
  if (value !== undefined) report([], "has no effect for this type; remove it");
};

const text: ValueCheck = (value, report) => {
  if (!isText(value)) report([], "must be a text that is not empty");
};

const optionalText: ValueCheck = (value, report, checkSchema) => {
  if (value !== undefined) text(value, report, checkSchema);
};

const textOrNumber: ValueCheck = (value, report) => {
  if (!isText(value) && !isNumber(value)) report([], "must be a text that is not empty, or a number");
};

const texts: ValueCheck = (value, report) => {
  if (!isText(value) && !isListOf(value, isText))
    report([], "must be a text, or a list of texts that are not empty");
};

const isListOf = (value: unknown, is: (item: unknown) => boolean): value is unknown[] =>
  Array.isArray(value) && value.length > 0 && value.every(is);

const list: ValueCheck = (value, report) => {
  try {
    const items = typeof value === "string" ? parseList(value) : value;
    // An empty text is part of each output.
    if (!isListOf(items, (item) => isText(item) || isNumber(item)))
      report([], "must be a list of texts that are not empty, or one text with commas");
  } catch (error) {
    report([], (error as SyntaxError).message);
  }
};

const regex: ValueCheck = (value, report) => {
  if (!isText(value)) return report([], "must be a regular expression");
  const compiled = compileRegex(value);
  if ("problem" in compiled) report([], compiled.problem);
};

const schema: ValueCheck = (value, report, checkSchema) => {
  if (value === undefined) return;
  if (!isRecord(value)) return report([], "must be a JSON Schema, which is an object");
  for (const problem of checkSchema(value)) report([], `is no JSON Schema that can be used: ${problem}`);
};

const sql: ValueCheck = (value, report) => {
  if (value === undefined) return;
  if (!isRecord(value)) return report([], "must be an object with allowedTables or allowedColumns");
  reportUnknown(value, ["databaseType", "allowedTables", "allowedColumns"], report);
  const { databaseType = "MySQL" } = value;
  if (databaseType !== "MySQL") report(["databaseType"], "must be MySQL; other databases are not supported");
  for (const name of ["allowedTables", "allowedColumns"])
    if (value[name] !== undefined) checkPermissions(value[name], reportBelow(report, name));
};

function checkPermissions(value: unknown, report: Report): void {
  if (!isListOf(value, isText)) report([], "must be a list such as select::null::users");
  for (const [index, pattern] of (Array.isArray(value) ? value : []).entries()) {
    const compiled = compileRegex(`(?:^${pattern}$)`);
    if ("problem" in compiled) report([index], compiled.problem);
  }
}

const elements: ValueCheck = (value, report) => {
  if (value === undefined) return;
  const paths = isRecord(value) ? value["requiredElements"] : value;
  if (!isListOf(paths, isText) && !(isText(paths) && !isRecord(value)))
    report([], "must be a list of element paths such as order.id");
};

export const valueChecks: Record<AssertionType, ValueCheck> = {
  equals: required,
  contains: textOrNumber,
  icontains: textOrNumber,
  "contains-any": list,
  "icontains-any": list,
  "contains-all": list,
  "icontains-all": list,
  "starts-with": text,
  regex,
  "is-json": schema,
  "contains-json": schema,
  "is-html": none,
  "contains-html": none,
  "is-sql": sql,
  "contains-sql": sql,
  "is-xml": elements,
  "contains-xml": elements,
  "is-refusal": none,
  levenshtein: text,
  "rouge-n": text,
  bleu: texts,
  gleu: texts,
  latency: none,
  cost: none,
  "llm-rubric": text,
  factuality: text,
  similar: texts,
  "answer-relevance": optionalText,
};
