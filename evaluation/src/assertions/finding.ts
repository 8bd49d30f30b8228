/** What an assertion function gets. */
export interface Subject {
  /** The output as text; JSON outputs are serialized. */
  text: string;
  output: unknown;
  /** The assertion's value, rendered. */
  value: unknown;
  threshold: number | undefined;
  costUsd: number | null;
  latencyMs: number | null;
  /** Problems of a value by a JSON Schema; none if it is valid. */
  validateSchema(schema: unknown, value: unknown): string[];
}

/** What an assertion function found, before `not-` is applied. */
export interface Finding {
  isMet: boolean;
  /** From 0 to 1; absent: 1 if the assertion passes, else 0. */
  score?: number;
  /** The score is 0 with and without `not-`. */
  isScoreless?: boolean;
  /** A sentence about the output that holds with and without `not-`. */
  fact: string;
}

/** Thrown if an assertion cannot be decided: it then fails, with and without `not-`. */
export class UndecidableError extends Error {}

const MAX_SHOWN = 120;

/** Text in quotes, shortened for a reason. */
export function quote(text: string): string {
  const isLong = text.length > MAX_SHOWN;
  return `"${isLong ? `${text.slice(0, MAX_SHOWN)}…` : text}"`;
}
