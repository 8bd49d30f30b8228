export interface Problem {
  /** The place, such as `[3].assert[0].value`; empty for the whole value. */
  path: string;
  /** What is wrong and what to do; the place reads as its subject: "must be …", "has …". */
  reason: string;
}

export type Path = readonly (string | number)[];

const NAME = /^[A-Za-z_$][\w$-]*$/;

export const formatPath = (path: Path): string =>
  path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    if (!NAME.test(part)) return `${text}[${JSON.stringify(part)}]`;
    return text === "" ? part : `${text}.${part}`;
  }, "");

/** Reports a problem at a path below the reporter's own. */
export type Report = (path: Path, reason: string) => void;

export const reportBelow =
  (report: Report, ...outer: Path): Report =>
  (path, reason) =>
    report([...outer, ...path], reason);

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const MAX_NAMED = 5;

export function reportUnknown(
  record: Record<string, unknown>,
  known: readonly string[],
  report: Report,
): void {
  for (const name of Object.keys(record)
    .filter((key) => !known.includes(key))
    .slice(0, MAX_NAMED))
    report([name], `is not known; the fields are ${known.join(", ")}`);
}

/** The format cannot hold these cases. */
export class TestSetExportError extends Error {
  readonly problems: Problem[];

  constructor(problems: Problem[]) {
    super(problems.map(({ path, reason }) => `${path} ${reason}`).join("; "));
    this.problems = problems;
  }
}
