import { parse, stringify } from "yaml";
import type { Candidate, FileContent, ImportProblem } from "./file-content.ts";
import { formatPath, isRecord, type Path, TestSetExportError } from "./problems.ts";
import { hasTemplate } from "./template.ts";
import type { TestCase } from "./test-case.ts";
import { MAX_CASES, takesThreshold } from "./validate.ts";
import { SourceError, toProblem, YamlSource } from "./yaml-source.ts";

/** Parts of a configuration that say what is tested, and how it is reported. */
const IGNORED = new Set(
  "$schema description prompts providers targets tags env outputPath sharing commandLineOptions evaluateOptions metadata".split(
    " ",
  ),
);
const TEST_FIELDS = new Set(["description", "vars", "assert", "threshold", "metadata", "options"]);
const OPTIONS = new Set(["disableVarExpansion", "disableDefaultAsserts"]);

interface Test {
  path: Path;
  line: number | null;
  value: Record<string, unknown>;
}

/** The tests of a promptfoo configuration, or of a file that its `tests` names. */
export function readPromptfooYaml(text: string): FileContent {
  const source = YamlSource.parse(text);
  if (!(source instanceof YamlSource)) return { candidates: [], problems: source.problems };
  const reader = new ConfigurationReader(source);
  try {
    reader.read();
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    reader.problems.push(toProblem(error));
  }
  return reader;
}

class ConfigurationReader implements FileContent {
  readonly candidates: Candidate[] = [];
  readonly problems: ImportProblem[] = [];
  readonly #source: YamlSource;
  #defaults: Record<string, unknown> = {};

  constructor(source: YamlSource) {
    this.#source = source;
  }

  read(): void {
    const { root } = this.#source;
    if (this.#source.isList(root)) this.#readTests(root, []);
    else this.#readConfiguration(root);
  }

  #readConfiguration(root: unknown): void {
    const members = this.#source.membersOf(root, []) ?? [];
    for (const { key, line } of members)
      if (!IGNORED.has(`${key}`) && key !== "tests" && key !== "defaultTest")
        this.problems.push({
          line,
          path: `${key}`,
          reason: "is not imported; only tests and defaultTest are",
        });
    const defaults = members.find(({ key }) => key === "defaultTest");
    if (defaults) this.#readDefaults(defaults.node);
    const tests = members.find(({ key }) => key === "tests");
    if (tests && this.#source.isList(tests.node)) this.#readTests(tests.node, ["tests"]);
    else this.#report(tests?.line ?? null, ["tests"], "must be a list of tests; no other file is read");
  }

  #report(line: number | null, path: Path, reason: string): void {
    this.problems.push(toProblem(new SourceError(line, path, reason)));
  }

  #readDefaults(node: unknown): void {
    const test = this.#readTest(node, ["defaultTest"]);
    if (test) this.#defaults = test.value;
    else
      throw new SourceError(
        this.#source.lineOfNode(node),
        ["defaultTest"],
        "has a problem, so no test is imported",
      );
  }

  #readTests(list: unknown, path: Path): void {
    for (const { key, node } of this.#source.membersOf(list, path) ?? []) {
      const test = this.#readTest(node, [...path, key]);
      if (test) this.#addCases(test);
      // One too many shows that there are more.
      if (this.candidates.length > MAX_CASES) break;
    }
  }

  /** Null after a problem. */
  #readTest(node: unknown, path: Path): Test | null {
    try {
      const line = this.#source.lineOfNode(node);
      const value = this.#source.toValue(node, path);
      if (!isRecord(value))
        throw new SourceError(line, path, "must be a test with vars and assert; no other file is read");
      this.#checkFields(value, TEST_FIELDS, path);
      if (isRecord(value["options"])) this.#checkFields(value["options"], OPTIONS, [...path, "options"]);
      return { path, line, value };
    } catch (error) {
      if (!(error instanceof SourceError) || error.path.length === 0) throw error;
      this.problems.push(toProblem(error));
      return null;
    }
  }

  #checkFields(value: Record<string, unknown>, known: Set<string>, path: Path): void {
    const name = Object.keys(value).find((key) => !known.has(key));
    if (name === undefined) return;
    const line = this.#source.lineOf(value, [name]);
    throw new SourceError(line, [...path, name], `is not supported; the fields are ${[...known].join(", ")}`);
  }

  #addCases({ path, line, value }: Test): void {
    const options = { ...recordOf(this.#defaults["options"]), ...recordOf(value["options"]) };
    const inherited = options["disableDefaultAsserts"] === true ? [] : listOf(this.#defaults["assert"]);
    const own = value["assert"] ?? [];
    const metadata = { ...recordOf(this.#defaults["metadata"]), ...recordOf(value["metadata"]) };
    const threshold = value["threshold"] ?? this.#defaults["threshold"];
    const vars = this.#varsOf(value, path);
    if (vars === null) return;
    const combinations = options["disableVarExpansion"] === true ? [vars] : expand(vars);
    for (const input of combinations)
      this.candidates.push({
        value: {
          title: titleOf(value["description"], this.candidates.length),
          isHidden: metadata["hidden"] === true,
          input,
          assert: Array.isArray(own) ? [...inherited, ...own].map((item) => this.#toAssertion(item)) : own,
          ...(threshold !== undefined && threshold !== null && { threshold }),
        },
        locate: (place) => this.#locate({ path, line, value }, input, inherited.length, place),
      });
  }

  #varsOf(value: Record<string, unknown>, path: Path): Record<string, unknown> | null {
    const own = value["vars"] ?? {};
    const inherited = recordOf(this.#defaults["vars"]);
    if (!isRecord(own)) {
      this.#report(
        this.#source.lineOf(value, ["vars"]),
        [...path, "vars"],
        "must be an object; no other file is read",
      );
      return null;
    }
    const vars = this.#source.copyLines(own, { ...inherited, ...own });
    const template = Object.keys(vars).find((name) => isTemplate(vars[name]));
    if (template !== undefined) {
      this.#report(this.#source.lineOf(vars, [template]), [...path, "vars", template], NO_TEMPLATE);
      return null;
    }
    return vars;
  }

  /** Leaves out what promptfoo ignores: `null`, and thresholds without effect. Schemas that are texts become objects. */
  #toAssertion(item: unknown): unknown {
    if (!isRecord(item)) return item;
    const copy: Record<string, unknown> = { ...item };
    const type = `${copy["type"]}`.replace(/^not-/, "");
    for (const [name, value] of Object.entries(copy))
      if (value === null && !(name === "value" && type === "equals")) delete copy[name];
    if (type === "assert-set" && Array.isArray(copy["assert"]))
      copy["assert"] = this.#source.copyLines(
        copy["assert"],
        copy["assert"].map((member) => this.#toAssertion(member)),
      );
    if (type === "is-json" || type === "contains-json") copy["value"] = parseSchema(copy["value"]);
    if (type !== "assert-set" && !takesThreshold(type)) delete copy["threshold"];
    if (copy["value"] === undefined) delete copy["value"];
    return this.#source.copyLines(item, copy);
  }

  #locate({ path, line, value }: Test, input: unknown, inherited: number, [field, ...rest]: Path) {
    const [index] = rest;
    if (field === undefined) return { line, path };
    if (field === "input")
      return { line: this.#source.lineOf(input, rest) ?? line, path: [...path, "vars", ...rest] };
    if (field !== "assert" || typeof index !== "number") {
      const name = field === "title" ? "description" : field;
      return { line: this.#source.lineOf(value, [name, ...rest]) ?? line, path: [...path, name, ...rest] };
    }
    const isInherited = index < inherited;
    const place = ["assert", isInherited ? index : index - inherited, ...rest.slice(1)];
    return {
      line: this.#source.lineOf(isInherited ? this.#defaults : value, place) ?? line,
      path: [...(isInherited ? ["defaultTest"] : path), ...place],
    };
  }
}

const recordOf = (value: unknown): Record<string, unknown> => (isRecord(value) ? value : {});
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

/** The description on one line, or the number of the case. */
export const titleOf = (description: unknown, index: number): string =>
  typeof description === "string" && description.trim() !== ""
    ? description.trim().replace(/\s+/g, " ")
    : `Case ${index + 1}`;

/** promptfoo makes one test of each combination of the variables that are lists of texts. */
function expand(vars: Record<string, unknown>): Record<string, unknown>[] {
  let combinations = [vars];
  for (const [name, value] of Object.entries(vars)) {
    if (!Array.isArray(value) || typeof value[0] !== "string") continue;
    // Each further list would be cut to the limit, too.
    combinations = combinations
      .slice(0, MAX_CASES + 1)
      .flatMap((one) => value.slice(0, MAX_CASES + 1).map((item) => ({ ...one, [name]: item })));
  }
  return combinations.slice(0, MAX_CASES + 1);
}

export const NO_TEMPLATE = "has a template expression; write the text that it stands for";

/** promptfoo replaces expressions in the texts of variables, and in lists of texts, which it expands. */
export const isTemplate = (value: unknown): boolean =>
  typeof value === "string"
    ? hasTemplate(value)
    : Array.isArray(value) && typeof value[0] === "string" && value.some(isTemplate);

/** A schema may be written as text. What is no schema stays for the check to refuse. */
export function parseSchema(value: unknown): unknown {
  if (typeof value !== "string" || hasTemplate(value)) return value;
  try {
    const parsed: unknown = parse(value, { maxAliasCount: 0, logLevel: "silent" });
    return isRecord(parsed) ? parsed : value;
  } catch {
    return value;
  }
}

export function writePromptfooYaml(cases: readonly TestCase[]): string {
  refuseTemplates(cases);
  const tests = cases.map(({ title, isHidden, input, assert, threshold }) => ({
    description: title,
    vars: input,
    assert,
    ...(threshold !== undefined && { threshold }),
    ...(Object.values(input).some(Array.isArray) && { options: { disableVarExpansion: true } }),
    ...(isHidden && { metadata: { hidden: true } }),
  }));
  return stringify(tests, {
    aliasDuplicateObjects: false,
    defaultStringType: "QUOTE_DOUBLE",
    defaultKeyType: "PLAIN",
    lineWidth: 0,
  });
}

/** @throws {TestSetExportError} if promptfoo would replace a part of an input */
export function refuseTemplates(cases: readonly TestCase[]): void {
  const problems = cases.flatMap(({ input }, index) =>
    Object.keys(input)
      .filter((name) => isTemplate(input[name]))
      .map((name) => ({
        path: formatPath([index, "input", name]),
        reason: "has a template expression, which promptfoo would replace",
      })),
  );
  if (problems.length > 0) throw new TestSetExportError(problems);
}
