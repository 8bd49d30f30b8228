import { readAgentSkills, writeAgentSkills } from "./agent-skills.ts";
import type { Candidate, FileContent, ImportProblem } from "./file-content.ts";
import { MAX_FILE_CHARACTERS } from "./limits.ts";
import { formatPath, type Path, type Report, TestSetExportError } from "./problems.ts";
import { readPromptfooCsv, writePromptfooCsv } from "./promptfoo-csv.ts";
import { readPromptfooYaml, writePromptfooYaml } from "./promptfoo-yaml.ts";
import type { TestCase } from "./test-case.ts";
import { type CheckOptions, checkTestCases, MAX_CASES, readCase } from "./validate.ts";

export const testSetFormats = ["promptfoo-yaml", "promptfoo-csv", "agent-skills"] as const;
export type TestSetFormat = (typeof testSetFormats)[number];

export interface ImportResult {
  /** The cases that can be imported, checked as `checkTestCases` does. */
  cases: TestCase[];
  /** What of the file is not in `cases`. An assertion that cannot be imported is left out of its case. */
  problems: ImportProblem[];
}

const MAX_PROBLEMS = 200;

const formats: Record<
  TestSetFormat,
  { read(text: string): FileContent; write(cases: readonly TestCase[]): string }
> = {
  "promptfoo-yaml": { read: readPromptfooYaml, write: writePromptfooYaml },
  "promptfoo-csv": { read: readPromptfooCsv, write: writePromptfooCsv },
  "agent-skills": { read: readAgentSkills, write: writeAgentSkills },
};

/**
 * Reads a test set from a file: promptfoo's YAML (a configuration with `tests`, or a list of tests) or CSV, or
 * `evals.json` of Agent Skills. What cannot be imported is named by line, and the rest is imported. Never throws for bad
 * content. A file has at most MAX_FILE_CHARACTERS.
 */
export function importTestSet(format: TestSetFormat, text: string, options: CheckOptions = {}): ImportResult {
  if (text.length > MAX_FILE_CHARACTERS) {
    const reason = `has ${text.length} characters; at most ${MAX_FILE_CHARACTERS} are allowed`;
    return { cases: [], problems: [{ line: null, path: "", reason }] };
  }
  const { candidates, problems } = formats[format].read(text);
  const cases: TestCase[] = [];
  const titles = new Set<string>();
  for (const candidate of candidates.slice(0, MAX_CASES)) {
    candidate.value.title = uniqueTitle(candidate.value.title, titles);
    const one = importCase(candidate, problems, options);
    if (one === null) continue;
    titles.add(one.title);
    cases.push(one);
  }
  if (candidates.length > MAX_CASES)
    problems.push({
      ...formatPlace(candidates[MAX_CASES]!.locate([])),
      reason: `and what follows is not imported: at most ${MAX_CASES} cases are allowed`,
    });
  return { cases, problems: problems.toSorted(byLine).slice(0, MAX_PROBLEMS) };
}

const byLine = (one: ImportProblem, other: ImportProblem): number => (one.line ?? 0) - (other.line ?? 0);

function importCase(candidate: Candidate, problems: ImportProblem[], options: CheckOptions): TestCase | null {
  const refused = new Set<string | number>();
  const report: Report = (path, reason) => {
    problems.push({ ...formatPlace(candidate.locate(path)), reason });
    refused.add(path[0] === "assert" && typeof path[1] === "number" ? path[1] : "case");
  };
  const one = readCase(candidate.value, report, options);
  if (one === null || refused.has("case")) return null;
  const assert = one.assert.filter((_, index) => !refused.has(index));
  if (assert.length > 0) return { ...one, assert };
  problems.push({
    ...formatPlace(candidate.locate([])),
    reason: "is not imported, since no assertion of it can be",
  });
  return null;
}

const formatPlace = ({ line, path }: { line: number | null; path: Path }) => ({
  line,
  path: formatPath(path),
});

function uniqueTitle(title: string, taken: Set<string>): string {
  let unique = title;
  for (let count = 2; taken.has(unique); count++) unique = `${title} (${count})`;
  return unique;
}

/**
 * Writes checked cases as a file that the format's own tools read, and that `importTestSet` reads as equal cases.
 * promptfoo's YAML holds all cases. Hidden cases have `metadata: { hidden: true }`.
 * @throws {TestSetExportError} if the format cannot hold a case: CSV has no sets, weights or inputs other than text, and
 * `evals.json` has judged assertions about a prompt only
 */
export function exportTestSet(format: TestSetFormat, cases: readonly TestCase[]): string {
  const checked = checkTestCases(cases);
  if ("problems" in checked) throw new TestSetExportError(checked.problems);
  return formats[format].write(checked.cases);
}
