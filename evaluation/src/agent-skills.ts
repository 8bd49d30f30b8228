import type { Candidate, FileContent, ImportProblem } from "./file-content.ts";
import { formatPath, isRecord, type Path, type Problem, TestSetExportError } from "./problems.ts";
import { titleOf } from "./promptfoo-yaml.ts";
import type { Assertion, TestCase } from "./test-case.ts";
import { MAX_CASES } from "./validate.ts";
import { SourceError, toProblem, YamlSource } from "./yaml-source.ts";

/** The metric of the assertion that holds the expected output. */
const EXPECTED = "expected_output";
const FIELDS = new Set(["id", "name", "prompt", EXPECTED, "files", "assertions", "metadata"]);

/**
 * `evals.json` of Agent Skills: each prompt is the input of a case, and a judge decides its assertions and whether the output
 * matches the expected one. JSON is a part of YAML, whose reader knows lines.
 */
export function readAgentSkills(text: string): FileContent {
  const problem = findJsonProblem(text);
  if (problem !== null) return { candidates: [], problems: [problem] };
  const source = YamlSource.parse(text);
  if (!(source instanceof YamlSource)) return { candidates: [], problems: source.problems };
  const candidates: Candidate[] = [];
  const problems: ImportProblem[] = [];
  for (const { path, node } of listEvals(source, problems)) {
    try {
      candidates.push(toCandidate(source, node, path, candidates.length));
    } catch (error) {
      if (!(error instanceof SourceError)) throw error;
      problems.push(toProblem(error));
      // The whole file is too large.
      if (error.path.length === 0) break;
    }
    // One too many shows that there are more.
    if (candidates.length > MAX_CASES) break;
  }
  return { candidates, problems };
}

const POSITION = /position (\d+)/;

function findJsonProblem(text: string): ImportProblem | null {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    const { message } = error as SyntaxError;
    const [, position] = POSITION.exec(message) ?? [];
    const line = position === undefined ? null : text.slice(0, Number(position)).split("\n").length;
    return { line, path: "", reason: `is not valid JSON: ${message}` };
  }
}

function listEvals(source: YamlSource, problems: ImportProblem[]): { path: Path; node: unknown }[] {
  const members = source.isList(source.root) ? [] : (source.membersOf(source.root, []) ?? []);
  const evals = members.find(({ key }) => key === "evals");
  if (evals !== undefined && source.isList(evals.node))
    return source.membersOf(evals.node, ["evals"])!.map(({ key, node }) => ({ path: ["evals", key], node }));
  problems.push({ line: evals?.line ?? 1, path: "evals", reason: "must be a list of evals" });
  return [];
}

function toCandidate(source: YamlSource, node: unknown, path: Path, index: number): Candidate {
  const value = source.toValue(node, path);
  const line = source.lineOfNode(node);
  const refuse = (field: string, reason: string) => {
    throw new SourceError(source.lineOf(value, [field]), [...path, field], reason);
  };
  if (!isRecord(value)) throw new SourceError(line, path, "must be an object with prompt and assertions");
  const unknown = Object.keys(value).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) refuse(unknown, `is not supported; the fields are ${[...FIELDS].join(", ")}`);
  const { prompt, files = [], assertions = [], metadata } = value;
  if (typeof prompt !== "string" || prompt.trim() === "")
    refuse("prompt", "must be a text that is not empty");
  if (!Array.isArray(files) || files.length > 0) refuse("files", "has files, which a case cannot have");
  if (!Array.isArray(assertions)) refuse("assertions", "must be a list of texts");
  const expected = value[EXPECTED];
  const hasExpected = expected !== undefined && expected !== null && expected !== "";
  const judged = [
    ...(hasExpected ? [{ type: "llm-rubric", value: expected, metric: EXPECTED }] : []),
    ...(assertions as unknown[]).map((assertion) => ({ type: "llm-rubric", value: assertion })),
  ];
  return {
    value: {
      title: titleOf(value["name"] ?? (typeof value["id"] === "string" ? value["id"] : null), index),
      isHidden: isRecord(metadata) && metadata["hidden"] === true,
      input: { prompt },
      assert: judged,
    },
    locate: (place) => {
      const source_ = placeInEval(place, hasExpected);
      return { line: source.lineOf(value, source_) ?? line, path: [...path, ...source_] };
    },
  };
}

function placeInEval([field, index]: Path, hasExpected: boolean): Path {
  if (field === "input") return ["prompt"];
  if (field === "title") return ["name"];
  if (field !== "assert" || typeof index !== "number") return [];
  return hasExpected && index === 0 ? [EXPECTED] : ["assertions", index - Number(hasExpected)];
}

export function writeAgentSkills(cases: readonly TestCase[]): string {
  const problems = cases.flatMap(findProblems);
  if (problems.length > 0) throw new TestSetExportError(problems);
  const evals = cases.map(({ title, isHidden, input, assert }, index) => {
    const rubrics = assert as Assertion[];
    const expected = rubrics.find(({ metric }) => metric === EXPECTED);
    return {
      id: index + 1,
      name: title,
      prompt: input["prompt"],
      [EXPECTED]: expected?.value ?? "",
      files: [],
      assertions: rubrics.filter((rubric) => rubric !== expected).map(({ value }) => value),
      ...(isHidden && { metadata: { hidden: true } }),
    };
  });
  return `${JSON.stringify({ skill_name: "exported-test-set", evals }, null, 2)}\n`;
}

function findProblems({ input, assert, threshold }: TestCase, index: number): Problem[] {
  const problems: Problem[] = [];
  const report = (path: Path, reason: string) =>
    problems.push({ path: formatPath([index, ...path]), reason });
  if (typeof input["prompt"] !== "string" || input["prompt"].trim() === "" || Object.keys(input).length > 1)
    report(["input"], "must be one text named prompt for evals.json");
  if (threshold !== undefined) report(["threshold"], "cannot be written to evals.json");
  for (const [place, assertion] of assert.entries()) {
    const isRubric = assertion.type === "llm-rubric" && typeof assertion.value === "string";
    const isPlain = isRubric && assertion.weight === undefined && assertion.threshold === undefined;
    const isExpected = isPlain && assertion.metric === EXPECTED && place === 0;
    if (!isPlain || (assertion.metric !== undefined && !isExpected))
      report(
        ["assert", place],
        "is not an llm-rubric without threshold, weight and metric, the only one of evals.json",
      );
  }
  return problems;
}
