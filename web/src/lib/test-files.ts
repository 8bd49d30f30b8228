import { ApiError } from "@stoa/sdk";

export const TEST_FORMATS = [
  {
    id: "promptfoo-yaml",
    name: "promptfoo, YAML",
    endings: ["yaml", "yml"],
    holds: "Holds every test",
  },
  {
    id: "promptfoo-csv",
    name: "promptfoo, CSV",
    endings: ["csv"],
    holds: "A row for each test, for spreadsheets",
  },
  {
    id: "agent-skills",
    name: "Agent Skills, evals.json",
    endings: ["json"],
    holds: "Tests that a judge model decides",
  },
] as const;

export type TestFormat = (typeof TEST_FORMATS)[number]["id"];

/** By the ending of a file's name; undefined: it says nothing. */
export const formatOfName = (name: string): TestFormat | undefined => {
  const ending = name.toLowerCase().split(".").at(-1) ?? "";
  return TEST_FORMATS.find(({ endings }) => endings.some((one) => one === ending))?.id;
};

/** A part of a file that is no test. */
export interface RefusedPart {
  /** null: it belongs to the whole file. */
  line: number | null;
  /** The place, such as tests[3].assert[0]; empty: `reason` names it. */
  path: string;
  reason: string;
}

/** The parts that an error of an import or export lists; null: it failed for another reason. */
export function refusedParts(error: unknown): RefusedPart[] | null {
  if (!(error instanceof ApiError) || error.code !== "VALIDATION_ERROR") return null;
  const { field, reason, errors } = error.details;
  const listed = errors ?? (field !== undefined && reason !== undefined ? [{ field, reason }] : []);
  if (listed.length === 0) return null;
  return (listed as { reason: string; line?: number }[]).map(({ reason, line = null }) => ({
    line,
    path: "",
    reason,
  }));
}
