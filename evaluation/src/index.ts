export * from "./embedding-assertions.ts";
export type { ImportProblem } from "./file-content.ts";
export {
  type AssertionVerdict,
  type CaseVerdict,
  type GradedRun,
  type GradeOptions,
  gradeOutput,
} from "./grade.ts";
export {
  exportTestSet,
  type ImportResult,
  importTestSet,
  type TestSetFormat,
  testSetFormats,
} from "./import.ts";
export * from "./judge-prompt.ts";
export * from "./judgment.ts";
export type { Problem } from "./problems.ts";
export { TestSetExportError } from "./problems.ts";
export {
  type EvaluatedColumn,
  type EvaluatedRun,
  type ModelScore,
  type ShownRate,
  scoreModels,
} from "./score-models.ts";
export { isJudged, type SplitAssertions, splitAssertions } from "./split-assertions.ts";
export {
  type CaseRuns,
  differenceInterval,
  isWorseBeyondInterval,
  median,
  passPowerK,
  passRate,
  type Rate,
  wilsonInterval,
} from "./statistics.ts";
export * from "./test-case.ts";
export {
  type CheckOptions,
  type CheckResult,
  checkTestCases,
  MAX_ASSERTIONS,
  MAX_CASES,
  MAX_TITLE,
  MAX_VALUE_BYTES,
} from "./validate.ts";
export {
  type EvaluationProofFile,
  type EvaluationVerification,
  type PublicKey,
  type SignedEvaluation,
  verifyEvaluation,
} from "./verify-evaluation.ts";
