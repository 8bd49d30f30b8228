import { type Assertion, type AssertionSet, judgedTypes, type TestCase } from "./test-case.ts";

export interface SplitAssertions {
  deterministic: (Assertion | AssertionSet)[];
  /** A judge model decides these. A set with a judged assertion is judged. */
  judged: (Assertion | AssertionSet)[];
}

/** The two classes of a case's assertions, whose verdicts are shown apart. */
export function splitAssertions(testCase: TestCase): SplitAssertions {
  const isOfJudge = (assertion: Assertion | AssertionSet) =>
    assertion.type === "assert-set" ? assertion.assert.some(isJudged) : isJudged(assertion);
  return {
    deterministic: testCase.assert.filter((assertion) => !isOfJudge(assertion)),
    judged: testCase.assert.filter(isOfJudge),
  };
}

const JUDGED: ReadonlySet<string> = new Set(judgedTypes);

/** Whether a judge model decides this assertion. */
export const isJudged = ({ type }: Assertion): boolean => JUDGED.has(baseType(type));

/** The type without `not-`. */
export const baseType = (type: string): string => type.replace(/^not-/, "");
