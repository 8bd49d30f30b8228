import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  type AssertionVerdict,
  deterministicTypes,
  type GradedRun,
  gradeOutput,
  type TestCase,
} from "../src/index.ts";
import { validateValue } from "../src/json-schema.ts";

type Verdict = [isPassed: number, score: number];

interface GradedCase {
  testCase: TestCase;
  run: GradedRun;
  /** Written by scripts/promptfoo-verdicts.ts. */
  verdict: { case: Verdict; assertions: Verdict[] };
}

const file = new URL("promptfoo-verdicts.gen.json", import.meta.url);
const gradedCases = JSON.parse(readFileSync(file, "utf8")) as GradedCase[];

const validateSchema = (schema: unknown, value: unknown): string[] =>
  validateValue(schema as Parameters<typeof validateValue>[0], value).map(({ reason }) => reason);

/** A set, then its members, as promptfoo lists them. */
const flatten = (verdicts: AssertionVerdict[]): Verdict[] =>
  verdicts.flatMap(({ isPassed, score, assertions = [] }) => [
    [Number(isPassed), score],
    ...flatten(assertions),
  ]);

test("gradeOutput: on 500 generated cases each verdict and score equals promptfoo's", () => {
  for (const { testCase, run, verdict } of gradedCases) {
    const { isPassed, score, assertions } = gradeOutput(testCase, run, { validateSchema });
    const actual = { case: [Number(isPassed), score], assertions: flatten(assertions) };
    assert.deepEqual(actual, verdict, JSON.stringify({ testCase, run, assertions }));
  }
});

test("The generated cases pass and fail each assertion type and its negation", () => {
  const seen = new Set<string>();
  for (const { testCase, run } of gradedCases) {
    const add = ({ type, isPassed, assertions = [] }: AssertionVerdict) => {
      seen.add(`${type} ${isPassed}`);
      assertions.forEach(add);
    };
    gradeOutput(testCase, run, { validateSchema }).assertions.forEach(add);
  }
  const all = ["assert-set", ...deterministicTypes.flatMap((type) => [type, `not-${type}`])];
  const missing = all
    .flatMap((type) => [`${type} true`, `${type} false`])
    .filter((verdict) => !seen.has(verdict));
  assert.equal(gradedCases.length, 500);
  assert.deepEqual(missing, []);
});

// Rules of promptfoo's documentation that no generated case decides: each of these fails if its rule is removed.
for (const [type, value, output, isPassed] of [
  ["icontains", "the CAT", "See The cat.", true],
  ["icontains-any", ["DOG", "cAt"], "The cat", true],
  ["icontains-all", ["THE", "cat"], "The CAT", true],
  ["contains", "the cat", "The cat", false],
  ["contains-any", "The , dog", "cat: The", true],
  ["starts-with", "cat", "The cat", false],
  ["levenshtein", "kitten", "kitten12345", true],
  ["levenshtein", "kitten", "kitten123456", false],
] as const)
  test(`${type} ${JSON.stringify(value)} on “${output}”: ${isPassed ? "passes" : "fails"}`, () => {
    const testCase = { title: "", isHidden: false, input: {}, assert: [{ type, value }] } as TestCase;
    const run: GradedRun = { output, costUsd: 0, latencyMs: 0 };
    assert.equal(gradeOutput(testCase, run, { validateSchema }).isPassed, isPassed);
  });
