// These builds bring their own Buffer, which browsers lack.
import { CsvError, parse } from "csv-parse/browser/esm/sync";
import { stringify } from "csv-stringify/browser/esm/sync";
import { isDeepEqual } from "./assertions/json.ts";
import type { Candidate, FileContent, ImportProblem } from "./file-content.ts";
import { parseList } from "./parse-list.ts";
import { formatPath, type Path, type Problem, TestSetExportError } from "./problems.ts";
import { isTemplate, NO_TEMPLATE, parseSchema, refuseTemplates, titleOf } from "./promptfoo-yaml.ts";
import { baseType } from "./split-assertions.ts";
import { hasTemplate } from "./template.ts";
import { type Assertion, deterministicTypes, judgedTypes, type TestCase } from "./test-case.ts";
import { MAX_CASES, takesThreshold } from "./validate.ts";

interface Row {
  line: number;
  /** By the name of the column. */
  cells: Map<string, string>;
}

export function readPromptfooCsv(text: string): FileContent {
  const problems: ImportProblem[] = [];
  const candidates: Candidate[] = [];
  for (const row of readRows(text, problems)) {
    const candidate = toCandidate(row, candidates.length, problems);
    if (candidate) candidates.push(candidate);
    // One too many shows that there are more.
    if (candidates.length > MAX_CASES) break;
  }
  return { candidates, problems };
}

interface Record {
  record: string[];
  info: { lines: number };
}

function readRows(text: string, problems: ImportProblem[]): Row[] {
  const [header, ...records] = readRecords(text, problems);
  if (header === undefined) return [];
  const names = header.record.map((name) => name.trim());
  const repeated = names.find((name, index) => names.indexOf(name) < index);
  if (repeated !== undefined || names.includes("__proto__")) {
    const reason =
      repeated === undefined ? "is a name that no column can have" : "is the name of two columns";
    problems.push({ line: 1, path: repeated ?? "__proto__", reason });
    return [];
  }
  return records.map(({ record }, index) => ({
    // A field with line ends makes its record end on a later line than it starts.
    line: (index === 0 ? header : records[index - 1]!).info.lines + 1,
    cells: new Map(names.map((name, column) => [name, record[column]!])),
  }));
}

function readRecords(text: string, problems: ImportProblem[]): Record[] {
  try {
    return parse(text, { bom: true, info: true }) as unknown as Record[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    const line = typeof error["lines"] === "number" ? error["lines"] : null;
    problems.push({ line, path: "", reason: `is not valid CSV: ${error.message}` });
    return [];
  }
}

const UNSUPPORTED = new Set(["__prefix", "__suffix", "__providerOutput"]);
const HIDDEN = "__metadata:hidden";
const CONFIG = /^__config:__expected([1-9]\d*)?:threshold$/;
const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

function toCandidate({ line, cells }: Row, index: number, problems: ImportProblem[]): Candidate | null {
  const report = (column: string, reason: string): null => {
    problems.push({ line, path: formatPath(["row", index + 1, column]), reason });
    return null;
  };
  const filled = [...cells].filter(([, cell]) => cell.trim() !== "");
  const unsupported = filled.find(
    ([name]) => UNSUPPORTED.has(name) || (name.startsWith("__config:") && !CONFIG.test(name)),
  );
  if (unsupported) return report(unsupported[0], "is not supported; leave the column out");
  const asserts = readAsserts(filled, report);
  const input = Object.fromEntries([...cells].filter(([name]) => !isSpecial(name)));
  const template = Object.keys(input).find((name) => isTemplate(input[name]));
  if (template !== undefined) return report(template, NO_TEMPLATE);
  const threshold = cells.get("__threshold")?.trim() ?? "";
  if (threshold !== "" && !NUMBER.test(threshold)) return report("__threshold", "must be a number");
  return {
    value: {
      title: titleOf(cells.get("__description"), index),
      isHidden: cells.get(HIDDEN)?.trim() === "true",
      input,
      assert: asserts.map(({ assertion }) => assertion),
      ...(threshold !== "" && { threshold: Number(threshold) }),
    },
    locate: (place) => ({ line, path: ["row", index + 1, ...columnOf(place, asserts)] }),
  };
}

const isSpecial = (name: string): boolean =>
  /^__(?:expected|config:|metadata:)/.test(name) ||
  ["__description", "__metric", "__threshold", "__metadata", ...UNSUPPORTED].includes(name);

interface ReadAssertion {
  column: string;
  assertion: { [field: string]: unknown };
}

function columnOf([field, index, ...rest]: Path, asserts: ReadAssertion[]): Path {
  if (field === "input" && index !== undefined) return [index, ...rest];
  if (field === "assert") return typeof index === "number" ? [asserts[index]!.column] : [];
  if (field === "threshold") return ["__threshold"];
  return field === "title" ? ["__description"] : [];
}

function readAsserts(
  filled: [string, string][],
  report: (column: string, reason: string) => null,
): ReadAssertion[] {
  const metric = filled.find(([name]) => name === "__metric")?.[1];
  const asserts: ReadAssertion[] = [];
  for (const [column, cell] of filled.filter(([name]) => name.startsWith("__expected"))) {
    const assertion = readAssertion(cell.trim());
    if (typeof assertion === "string") report(column, assertion);
    asserts.push({
      column,
      assertion: typeof assertion === "string" ? {} : { ...assertion, ...(metric && { metric }) },
    });
  }
  for (const [name, cell] of filled) {
    const [isConfig, number = "1"] = CONFIG.exec(name) ?? [];
    const configured = asserts[Number(number) - 1];
    if (isConfig === undefined) continue;
    if (!NUMBER.test(cell.trim())) report(name, "must be a number");
    else if (configured && takesThreshold(`${configured.assertion["type"]}`))
      configured.assertion["threshold"] = Number(cell);
  }
  return asserts.filter(({ assertion }) => "type" in assertion);
}

/** promptfoo's other types, whose names would otherwise be read as a text that the output equals. */
const OTHER_TYPES =
  "agent-rubric classifier context-faithfulness context-recall context-relevance conversation-relevance finish-reason g-eval guardrails " +
  "human is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call javascript max-score meteor " +
  "model-graded-closedqa model-graded-factuality moderation perplexity perplexity-score pi python ruby search-rubric select-best " +
  "similar:cosine similar:dot similar:euclidean skill-used tool-call-f1 trace-error-spans trace-span-count trace-span-duration " +
  "trajectory:goal-success trajectory:step-count trajectory:tool-args-match trajectory:tool-sequence trajectory:tool-used webhook " +
  "word-count assert-set";
const TYPES = [...OTHER_TYPES.split(" "), ...deterministicTypes, ...judgedTypes].join("|");
const ASSERTION = new RegExp(String.raw`^((?:not-)?(?:${TYPES}))(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?$`);
const CODE = /^(?:javascript|fn|eval|python|ruby|webhook|file):/;
const LISTS = new Set(["contains-any", "contains-all", "icontains-any", "icontains-all"]);
/** The types with a threshold in parentheses, and what promptfoo assumes without. */
const THRESHOLDS: { [type: string]: number } = {
  "answer-relevance": 0.75,
  cost: 0.75,
  latency: 0.75,
  levenshtein: 0.75,
  "rouge-n": 0.75,
  similar: 0.8,
};

/** The assertion in a cell such as `contains-any(0.5): a, b`, or why it is refused. */
function readAssertion(cell: string): Assertion | string {
  if (CODE.test(cell)) return "is code or a file, which is not run here; use regex or is-json instead";
  const text = cell.replace(/^grade:/, "llm-rubric:");
  if (text.startsWith("llm-rubric:")) return { type: "llm-rubric", value: text.slice("llm-rubric:".length) };
  const [, type, limit, value] = ASSERTION.exec(text) ?? [];
  if (type === undefined) return { type: "equals", value: cell };
  const base = baseType(type);
  const assumed = THRESHOLDS[base];
  if (limit !== undefined && assumed === undefined && base !== "starts-with")
    return `has a threshold in parentheses, which promptfoo ignores for ${base}; use a column __config:__expected1:threshold`;
  const parsed = readCellValue(base, value);
  return {
    type: type as Assertion["type"],
    ...(parsed !== undefined && parsed !== "" && { value: parsed }),
    ...(assumed !== undefined && { threshold: limit === undefined ? assumed : Number(limit) }),
  };
}

function readCellValue(type: string, value: string | undefined): unknown {
  if (value === undefined) return undefined;
  if (type === "is-json" || type === "contains-json") return parseSchema(value);
  if (!LISTS.has(type)) return value.trim();
  try {
    return parseList(value);
  } catch {
    // The check names what is wrong with it.
    return value;
  }
}

export function writePromptfooCsv(cases: readonly TestCase[]): string {
  refuseTemplates(cases);
  const rows = cases.map(toCells);
  const names = [...new Set(rows.flatMap((row) => [...row.keys()]))];
  const text = stringify([names, ...rows.map((row) => names.map((name) => row.get(name) ?? ""))]);
  const problems = findLosses(cases, text);
  if (problems.length > 0) throw new TestSetExportError(problems);
  return text;
}

function toCells({ title, isHidden, input, assert, threshold }: TestCase): Map<string, string> {
  const cells = new Map([["__description", title]]);
  for (const [name, value] of Object.entries(input)) cells.set(name, String(value));
  for (const [index, assertion] of assert.entries()) {
    if (assertion.type === "assert-set") continue;
    cells.set(`__expected${index + 1}`, toCell(assertion));
    if (assertion.metric !== undefined) cells.set("__metric", assertion.metric);
  }
  if (threshold !== undefined) cells.set("__threshold", `${threshold}`);
  if (isHidden) cells.set(HIDDEN, "true");
  return cells;
}

const QUOTED = /["\\]/g;
/** What promptfoo assumes in YAML, which differs from CSV. */
const YAML_THRESHOLDS: { [type: string]: number } = { levenshtein: 5, "rouge-n": 0.75 };

function toCell({ type: name, value, threshold = YAML_THRESHOLDS[baseType(name)] }: Assertion): string {
  const type = threshold === undefined ? name : `${name}(${threshold})`;
  if (value === undefined) return type;
  const list = toList(value, baseType(name));
  if (Array.isArray(list) && LISTS.has(baseType(name)))
    return `${type}:${list.map((item) => `"${item.replace(QUOTED, "\\$&")}"`).join(",")}`;
  if (Array.isArray(list)) return `${type}:${list.join(",")}`;
  return `${type}:${typeof value === "object" ? JSON.stringify(value) : value}`;
}

/** Reads the file again: what is not equal cannot be written as CSV. */
function findLosses(cases: readonly TestCase[], text: string): Problem[] {
  const { candidates, problems } = readPromptfooCsv(text);
  if (problems.length > 0 || candidates.length !== cases.length)
    return [{ path: "", reason: `cannot be written as CSV: ${problems[0]?.reason}` }];
  return cases.flatMap((one, index) => {
    const read = candidates[index]!.value as TestCase;
    const fields = (["title", "isHidden", "input", "assert", "threshold"] as const).filter((field) =>
      field === "assert"
        ? !isDeepEqual(one.assert.map(toComparable), read.assert.map(toComparable))
        : !isDeepEqual(one[field], read[field]),
    );
    return fields.map((field) => ({ path: formatPath([index, field]), reason: LOSSES[field] }));
  });
}

const LOSSES = {
  title: "cannot be written as CSV",
  isHidden: "cannot be written as CSV",
  input: "must be texts for CSV, with the same names in each case and none that starts with __expected",
  assert:
    "cannot be written as CSV, which has no sets and no weights, few thresholds, one metric for all assertions, and no spaces around values; use YAML",
  threshold: "cannot be written as CSV",
};

/** Values that promptfoo reads alike become equal. */
function toComparable(assertion: TestCase["assert"][number]): unknown {
  if (assertion.type === "assert-set") return assertion;
  const type = baseType(assertion.type);
  const { value, threshold = YAML_THRESHOLDS[type] } = assertion;
  const items = toList(value, type);
  return {
    ...assertion,
    value: typeof items === "object" ? items : `${items}`,
    ...(threshold !== undefined && { threshold }),
  };
}

/** promptfoo splits the text of a list; with a template it does so after rendering, which CSV cannot hold. */
function toList(value: unknown, type: string): unknown {
  if (Array.isArray(value)) return value.map(String);
  if (typeof value !== "string" || hasTemplate(value)) return value;
  if (type === "is-xml" || type === "contains-xml") return value.split(",").map((path) => path.trim());
  return LISTS.has(type) ? parseList(value) : value;
}
