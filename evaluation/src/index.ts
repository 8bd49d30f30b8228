export {
  type AssertionVerdict,
  type CaseVerdict,
  type GradedRun,
  type GradeOptions,
  gradeOutput,
  isJudged,
  type SplitAssertions,
  splitAssertions,
} from "./grade.ts";
export * from "./test-case.ts";
