import type { Path, Problem } from "./problems.ts";

export interface ImportProblem extends Problem {
  /** From 1; null if the problem has no line. */
  line: number | null;
}

/** A case as a file has it, before it is checked. */
export interface Candidate {
  value: { title: string; isHidden: boolean; input: unknown; assert: unknown; threshold?: unknown };
  /** Where a place of the value is in the file. */
  locate(path: Path): { line: number | null; path: Path };
}

export interface FileContent {
  candidates: Candidate[];
  problems: ImportProblem[];
}
