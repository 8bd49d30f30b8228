import { type Finding, type Subject, UndecidableError } from "./assertions/finding.ts";
import { graders } from "./assertions/graders.ts";
import { combine, withMetric } from "./combine-verdicts.ts";
import { baseType, splitAssertions } from "./split-assertions.ts";
import { renderValue } from "./template.ts";
import type { Assertion, AssertionSet, DeterministicType, TestCase } from "./test-case.ts";

/** One run of a case: what the product returned. */
export interface GradedRun {
  /** Text or a JSON value. */
  output: unknown;
  /** Null if unknown: a `cost` assertion then fails. */
  costUsd: number | null;
  /** Null if unknown: a `latency` assertion then fails. */
  latencyMs: number | null;
}

export interface GradeOptions {
  /** Problems of a value by a JSON Schema, none if it is valid. The service passes its own subset of JSON Schema. */
  validateSchema(schema: unknown, value: unknown): string[];
}

export interface AssertionVerdict {
  /** As in the case, with `not-`; `assert-set` for a set. */
  type: string;
  isPassed: boolean;
  /** From 0 to 1. */
  score: number;
  /** A sentence about the output. It may quote the assertion's value, so it is as secret as a hidden case. */
  reason: string;
  metric?: string;
  /** Of a set. */
  assertions?: AssertionVerdict[];
}

export interface CaseVerdict {
  /** Null if the case has judged assertions only: there is no deterministic verdict then. */
  isPassed: boolean | null;
  /** The weighted mean of the assertions' scores, from 0 to 1; null if `isPassed` is null. */
  score: number | null;
  /** Of the deterministic assertions, in the case's order. */
  assertions: AssertionVerdict[];
}

/**
 * The verdict of a case's deterministic assertions about one run, equal to promptfoo's (docs/decisions/0069-test-sets.md).
 * The case passes if each assertion passes or, with a threshold, if the weighted mean of their scores reaches it. Judged
 * assertions have no part in it. The case must have passed `checkTestCases`; an assertion that cannot be decided fails.
 */
export function gradeOutput(testCase: TestCase, run: GradedRun, options: GradeOptions): CaseVerdict {
  const { deterministic } = splitAssertions(testCase);
  if (deterministic.length === 0) return { isPassed: null, score: null, assertions: [] };
  const grade = (assertion: Assertion | AssertionSet): AssertionVerdict =>
    assertion.type === "assert-set"
      ? gradeSet(
          assertion,
          assertion.assert.map((member) => gradeAssertion(member, testCase, run, options)),
        )
      : gradeAssertion(assertion, testCase, run, options);
  const assertions = deterministic.map(grade);
  return { ...combine(deterministic, assertions, testCase.threshold), assertions };
}

function gradeSet(set: AssertionSet, assertions: AssertionVerdict[]): AssertionVerdict {
  const combined = combine(set.assert, assertions, set.threshold);
  const failed = assertions.filter(({ isPassed }) => !isPassed).length;
  const reason =
    set.threshold === undefined
      ? `${failed} of ${assertions.length} assertions failed.`
      : `The score is ${combined.score.toFixed(2)}; the threshold is ${set.threshold}.`;
  return { type: set.type, ...combined, reason, ...withMetric(set), assertions };
}

function gradeAssertion(
  assertion: Assertion,
  { input }: TestCase,
  { output, costUsd, latencyMs }: GradedRun,
  { validateSchema }: GradeOptions,
): AssertionVerdict {
  const value = renderValue(assertion.value, input);
  const text = typeof output === "string" ? output : (JSON.stringify(output) ?? "");
  const { threshold } = assertion;
  const subject = { text, output, value, threshold, costUsd, latencyMs, validateSchema };
  return { type: assertion.type, ...decide(assertion.type, subject), ...withMetric(assertion) };
}

function decide(type: string, subject: Subject): { isPassed: boolean; score: number; reason: string } {
  try {
    return applyNegation(graders[baseType(type) as DeterministicType](subject), type.startsWith("not-"));
  } catch (error) {
    if (error instanceof UndecidableError || error instanceof SyntaxError)
      return { isPassed: false, score: 0, reason: error.message };
    throw error;
  }
}

function applyNegation({ isMet, score, isScoreless, fact }: Finding, isNegated: boolean) {
  const isPassed = isMet !== isNegated;
  const exact = score === undefined ? Number(isPassed) : isNegated ? 1 - score : score;
  return { isPassed, score: isScoreless ? 0 : exact, reason: fact };
}
