import { type SchemaCheck, valueChecks } from "./check-value.ts";
import {
  formatPath,
  isRecord,
  type Path,
  type Problem,
  type Report,
  reportBelow,
  reportUnknown,
} from "./problems.ts";
import { baseType, isJudged } from "./split-assertions.ts";
import { checkTemplate, hasTemplate, renderValue } from "./template.ts";
import {
  type Assertion,
  type AssertionSet,
  type AssertionType,
  deterministicTypes,
  judgedTypes,
  type TestCase,
} from "./test-case.ts";

export const MAX_CASES = 200;
/** Per case, with the members of sets. */
export const MAX_ASSERTIONS = 50;
/** Bytes of one input or assertion value as JSON. */
export const MAX_VALUE_BYTES = 100_000;
export const MAX_TITLE = 200;
const MAX_METRIC = 100;
const MAX_WEIGHT = 1_000;
const MAX_DEPTH = 64;
const MAX_PROBLEMS = 100;

export interface CheckOptions {
  /** Problems of a JSON Schema itself; absent: any object is taken. The service passes its own subset. */
  checkSchema?: SchemaCheck;
}

export type CheckResult = { cases: TestCase[] } | { problems: Problem[] };

/**
 * Checks a list of test cases of unknown origin (API, file or editor): limits, types, values, templates, regular
 * expressions by RE2, JSON Schemas by `checkSchema`. Whatever would always pass is refused: `weight: 0`, `threshold: 0`,
 * empty texts. Returns the cases with their known fields only, or up to 100 problems in the order of the cases.
 */
export function checkTestCases(value: unknown, options: CheckOptions = {}): CheckResult {
  const problems: Problem[] = [];
  const report: Report = (path, reason) => {
    if (problems.length < MAX_PROBLEMS) problems.push({ path: formatPath(path), reason });
  };
  const cases = readCases(value, report, options);
  return problems.length > 0 ? { problems } : { cases };
}

function readCases(value: unknown, report: Report, options: CheckOptions): TestCase[] {
  if (!Array.isArray(value)) {
    report([], "must be a list of cases");
    return [];
  }
  if (value.length > MAX_CASES) report([], `has ${value.length} cases; at most ${MAX_CASES} are allowed`);
  const cases = value
    .slice(0, MAX_CASES)
    .map((one, index) => readCase(one, reportBelow(report, index), options));
  reportRepeatedTitles(cases, report);
  return cases.filter((one) => one !== null);
}

function reportRepeatedTitles(cases: (TestCase | null)[], report: Report): void {
  const first = new Map<string, number>();
  for (const [index, one] of cases.entries()) {
    if (one === null) continue;
    const other = first.get(one.title);
    if (other === undefined) first.set(one.title, index);
    else report([index, "title"], `is the title of case ${other + 1}, too; each case needs its own`);
  }
}

const CASE_FIELDS = ["title", "isHidden", "input", "assert", "threshold"];

/** Reports each problem of one case. Null if it is no case at all. */
export function readCase(value: unknown, report: Report, options: CheckOptions): TestCase | null {
  if (!isRecord(value)) {
    report([], "must be an object with title, input and assert");
    return null;
  }
  reportUnknown(value, CASE_FIELDS, report);
  const { isHidden = false } = value;
  if (typeof isHidden !== "boolean") report(["isHidden"], "must be true or false");
  const input = readInput(value["input"], reportBelow(report, "input"));
  return {
    title: readTitle(value["title"], reportBelow(report, "title")),
    isHidden: isHidden === true,
    input,
    assert: readAssertions(value["assert"], { input, options, report: reportBelow(report, "assert") }),
    ...readThreshold(value["threshold"], 1, reportBelow(report, "threshold")),
  };
}

/** Controls, formats, private use, lone surrogates and separators. Joiners of emoji are allowed. */
const INVISIBLE = /(?!\u200c|\u200d)[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;

function readTitle(value: unknown, report: Report): string {
  if (typeof value !== "string" || value.trim() === "") {
    report([], "must be a text that is not empty");
    return "";
  }
  const title = value.trim();
  if ([...title].length > MAX_TITLE) report([], `must have at most ${MAX_TITLE} characters`);
  if (INVISIBLE.test(title)) report([], "must be one line without control or other invisible characters");
  return title;
}

function readInput(value: unknown, report: Report): Record<string, unknown> {
  if (!isRecord(value)) {
    report([], "must be an object with the variables of the prompt or the input of the workflow");
    return {};
  }
  for (const [name, item] of Object.entries(value)) {
    checkJson(item, reportBelow(report, name));
    if (name === "__proto__") report([name], "is a name that no variable can have");
    if (namesFile(item))
      report([name], "starts with file:// or package:, which promptfoo replaces; put a space before it");
  }
  return value;
}

const namesFile = (value: unknown): boolean =>
  typeof value === "string" && /^(?:file:\/\/|package:)/.test(value);

function checkJson(value: unknown, report: Report): void {
  const problem = findJsonProblem(value, 0);
  const bytes = problem === null ? new TextEncoder().encode(JSON.stringify(value)).length : 0;
  if (problem !== null) report([], problem);
  if (bytes > MAX_VALUE_BYTES) report([], `has ${bytes} bytes; at most ${MAX_VALUE_BYTES} are allowed`);
}

function findJsonProblem(value: unknown, depth: number): string | null {
  if (depth > MAX_DEPTH) return `is nested more than ${MAX_DEPTH} levels deep`;
  if (value === null || typeof value === "string" || typeof value === "boolean") return null;
  if (typeof value === "number")
    return Number.isFinite(value) ? null : "must not have a number that JSON cannot hold";
  if (typeof value !== "object") return "must be a JSON value";
  if (!Array.isArray(value) && Object.hasOwn(value, "__proto__")) return "must not have the name __proto__";
  for (const item of Object.values(value)) {
    const problem = findJsonProblem(item, depth + 1);
    if (problem !== null) return problem;
  }
  return null;
}

interface CaseContext {
  input: Record<string, unknown>;
  options: CheckOptions;
  report: Report;
}

const below = (context: CaseContext, ...path: Path): CaseContext => ({
  ...context,
  report: reportBelow(context.report, ...path),
});

function readAssertions(value: unknown, context: CaseContext): TestCase["assert"] {
  const { report } = context;
  if (!Array.isArray(value) || value.length === 0) {
    report([], "must be a list with at least one assertion");
    return [];
  }
  const count = value.reduce(
    (sum: number, item) => sum + (isSet(item) && Array.isArray(item.assert) ? item.assert.length : 1),
    0,
  );
  if (count > MAX_ASSERTIONS) {
    report([], `has ${count} assertions; at most ${MAX_ASSERTIONS} are allowed`);
    return [];
  }
  return value.map((item, index) =>
    isSet(item) ? readSet(item, below(context, index)) : readAssertion(item, below(context, index)),
  );
}

const isSet = (value: unknown): value is Record<string, unknown> & { assert: unknown } =>
  isRecord(value) && value["type"] === "assert-set";

function readSet(value: Record<string, unknown>, context: CaseContext): AssertionSet {
  const { report } = context;
  reportUnknown(value, ["type", "assert", "threshold", "weight", "metric"], report);
  const members = value["assert"];
  if (!Array.isArray(members) || members.length === 0)
    report(["assert"], "must be a list with at least one assertion");
  const assert = (Array.isArray(members) ? members : []).map((member, index) =>
    readAssertion(member, below(context, "assert", index)),
  );
  if (assert.some(isJudged) && !assert.every(isJudged))
    report(["assert"], "mixes judged and deterministic assertions; put them into two sets");
  return {
    type: "assert-set",
    assert,
    ...readThreshold(value["threshold"], 1, reportBelow(report, "threshold")),
    ...readWeight(value["weight"], reportBelow(report, "weight")),
    ...readMetric(value["metric"], reportBelow(report, "metric")),
  };
}

function readAssertion(value: unknown, context: CaseContext): Assertion {
  const { report } = context;
  if (!isRecord(value)) {
    report([], "must be an object with type and value");
    return { type: "equals" };
  }
  reportUnknown(value, ["type", "value", "threshold", "weight", "metric"], report);
  const type = readType(value["type"], reportBelow(report, "type"));
  const rest = {
    ...readWeight(value["weight"], reportBelow(report, "weight")),
    ...readMetric(value["metric"], reportBelow(report, "metric")),
  };
  if (type === null) return { type: "equals", ...rest };
  const limit = THRESHOLDS[baseType(type)];
  if (limit === undefined && value["threshold"] !== undefined)
    report(["threshold"], "has no effect for this type; remove it");
  if (REQUIRED_THRESHOLDS.has(baseType(type)) && value["threshold"] === undefined)
    report(["threshold"], "is required for this type");
  return {
    type,
    ...readValue(baseType(type) as AssertionType, value["value"], below(context, "value")),
    ...(limit !== undefined && readThreshold(value["threshold"], limit, reportBelow(report, "threshold"))),
    ...rest,
  };
}

const TYPES: readonly string[] = [...deterministicTypes, ...judgedTypes];
const CODE_TYPES = new Set(["javascript", "python", "ruby", "webhook"]);

function readType(value: unknown, report: Report): Assertion["type"] | null {
  const type = typeof value === "string" ? baseType(value) : "";
  if (TYPES.includes(type)) return value as Assertion["type"];
  if (CODE_TYPES.has(type))
    report([], `is ${type}, but no code of test sets is run; use regex or is-json instead`);
  else report([], `must be one of ${TYPES.join(", ")}, each also after "not-", or assert-set`);
  return null;
}

/** The largest threshold of each type that has one. */
const THRESHOLDS: Record<string, number> = {
  "rouge-n": 1,
  bleu: 1,
  gleu: 1,
  levenshtein: 100_000,
  latency: Number.MAX_SAFE_INTEGER,
  cost: Number.MAX_SAFE_INTEGER,
  "llm-rubric": 1,
  similar: 1,
  "answer-relevance": 1,
};
/** Whether the threshold of this type has an effect. */
export const takesThreshold = (type: string): boolean => baseType(type) in THRESHOLDS;

const REQUIRED_THRESHOLDS = new Set(["latency", "cost"]);

function readValue(
  type: AssertionType,
  value: unknown,
  { input, options, report }: CaseContext,
): { value?: unknown } {
  if (value === undefined) {
    valueChecks[type](undefined, report, options.checkSchema ?? (() => []));
    return {};
  }
  let hasProblem = false;
  const reportFirst: Report = (path, reason) => {
    if (!hasProblem) report(path, reason);
    hasProblem = true;
  };
  checkJson(value, reportFirst);
  for (const [index, item] of (Array.isArray(value) ? value : [value]).entries())
    if (typeof item === "string")
      checkText(item, input, reportBelow(reportFirst, ...(Array.isArray(value) ? [index] : [])));
  if (!hasProblem) valueChecks[type](renderValue(value, input), report, options.checkSchema ?? (() => []));
  return { value };
}

function checkText(text: string, input: Record<string, unknown>, report: Report): void {
  const problem = checkTemplate(text, input);
  if (problem !== null) report([], problem);
  if (namesFile(text)) report([], "names a file or package; write its content here, since no file is read");
}

function readThreshold(value: unknown, max: number, report: Report): { threshold?: number } {
  if (value === undefined) return {};
  if (typeof value !== "number" || !(value > 0 && value <= max))
    report(
      [],
      `must be a number above 0${max < Number.MAX_SAFE_INTEGER ? `, at most ${max}` : ""}${value === 0 ? "; 0 would always pass" : ""}`,
    );
  return { threshold: value as number };
}

function readWeight(value: unknown, report: Report): { weight?: number } {
  if (value === undefined) return {};
  if (typeof value !== "number" || !(value > 0 && value <= MAX_WEIGHT))
    report(
      [],
      `must be a number above 0, at most ${MAX_WEIGHT}${value === 0 ? "; 0 would always pass" : ""}`,
    );
  return { weight: value as number };
}

function readMetric(value: unknown, report: Report): { metric?: string } {
  if (value === undefined) return {};
  if (typeof value !== "string" || value.trim() === "" || value.length > MAX_METRIC || INVISIBLE.test(value))
    report([], `must be a line of 1 to ${MAX_METRIC} visible characters`);
  else if (hasTemplate(value)) report([], "must not be a template");
  return { metric: value as string };
}
