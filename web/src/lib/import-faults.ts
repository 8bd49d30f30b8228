import { ApiError } from "@stoa/sdk";

export interface ImportFault {
  /** The line, in a zip after its file: "poet.md:4". */
  place: string;
  field: string;
  problem: string;
  /** What to do, where the problem does not say it. */
  fix: string | null;
}

interface Located {
  field: string;
  reason: string;
  line?: number;
  file?: string;
}

/** The faults of a file by line; null: the import failed for another reason. */
export function readFaults(error: unknown): { faults: ImportFault[]; total: number } | null {
  if (!(error instanceof ApiError)) return null;
  const { errors, total } = error.details as { errors?: Located[]; total?: number };
  if (!errors || errors.every(({ line }) => line === undefined)) return null;
  const faults = errors.map(({ field, reason, line, file }) => ({
    place: file === undefined ? String(line) : `${file}:${line}`,
    field,
    problem: toSentence(reason),
    fix: fixOf(field, reason),
  }));
  return { faults, total: total ?? faults.length };
}

/** The API says "must be a number": the field's name would stand before it. */
function toSentence(reason: string): string {
  const whole = /^(is|are|must|has|have|may|needs|can) /.test(reason) ? `it ${reason}` : reason;
  return `${whole.charAt(0).toUpperCase()}${whole.slice(1)}${/[.!?]$/.test(whole) ? "" : "."}`;
}

const FIXES: [RegExp, (field: string) => string][] = [
  [/required|missing|received undefined/i, (field) => `Add ${field}.`],
  [/not known|unrecognized/i, () => "Remove it, or correct its name."],
  [/JSON/i, () => "Check the quotes, commas and brackets of this line."],
  [/positive|at least|greater|too small|>=/i, () => "Enter a larger value."],
  [/at most|too (big|long)|<=/i, () => "Shorten it."],
];

const fixOf = (field: string, reason: string): string | null =>
  FIXES.find(([pattern]) => pattern.test(reason))?.[1](field) ?? null;
