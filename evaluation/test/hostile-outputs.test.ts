import assert from "node:assert/strict";
import { test } from "node:test";
import { gradeOutput } from "../src/grade.ts";
import type { Assertion } from "../src/test-case.ts";

const options = { validateSchema: () => [] };

/** The reason why a hostile output does not pass. */
function reasonOf(assertion: Assertion, output: string): string {
  const testCase = { title: "Hostile", isHidden: false, input: {}, assert: [assertion] };
  const { isPassed, assertions } = gradeOutput(testCase, { output, costUsd: 0, latencyMs: 0 }, options);
  assert.equal(isPassed, false);
  return assertions[0]?.reason ?? "";
}

test("SQL that the parser needs seconds for: does not pass, and is not parsed", () => {
  const statements = "select 1;".repeat(20_000);
  for (const type of ["is-sql", "contains-sql"] as const)
    assert.match(reasonOf({ type }, statements), /more than 20000 characters/);
});

test("opening braces without an end: contain no JSON", () => {
  assert.match(reasonOf({ type: "contains-json" }, '{"a":'.repeat(20_000)), /contains no JSON object/);
});
