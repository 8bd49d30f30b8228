import { type ErrorCode, errorCatalogue } from "@stoa/contract";

export interface FieldProblem {
  /** A path such as `variables.topic`, `content.steps[1].needs` or `price`. */
  field: string;
  reason: string;
}

export interface ValidationIssue {
  path: readonly PropertyKey[];
  reason: string;
}

export const formatPath = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text ? `${text}.${String(part)}` : String(part),
    "",
  );

export interface ErrorDetails {
  [name: string]: unknown;
}

/** An error of the catalogue, returned to the client. Any other error becomes INTERNAL_ERROR. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails | undefined;
  /** Seconds, sent as `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, message?: string, details?: ErrorDetails, retryAfterSeconds?: number) {
    super(message ?? errorCatalogue[code].message);
    this.name = "ApiError";
    this.code = code;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  get status(): number {
    return httpStatusOf(this.code);
  }
}

export const httpStatusOf = (code: ErrorCode): number => errorCatalogue[code].status;

/** Enough to correct a request. Without a limit, a body of a million unknown fields would get an even larger response. */
export const MAX_PROBLEMS = 100;

/** 400 for a field rule, 422 for a rule that needs state. The message describes the first problem; `details` lists all. */
export function fieldError(code: "INVALID_REQUEST" | "VALIDATION_ERROR", problems: FieldProblem[]): ApiError {
  const [first] = problems;
  if (!first) throw new TypeError("fieldError needs at least one problem");
  return new ApiError(code, formatProblem(first), {
    ...first,
    errors: problems.slice(0, MAX_PROBLEMS),
  });
}

/** Some reasons, such as "price must be positive", already begin with the field. */
const formatProblem = ({ field, reason }: FieldProblem): string =>
  reason === field || reason.startsWith(`${field} `) ? reason : `${field}: ${reason}`;

export const invalidRequest = (field: string, reason: string) =>
  fieldError("INVALID_REQUEST", [{ field, reason }]);
export const ruleViolation = (field: string, reason: string) =>
  fieldError("VALIDATION_ERROR", [{ field, reason }]);

/** Falls back to the message as a problem of `root`. */
export const fieldProblemsOf = ({ details, message }: ApiError, root: string): FieldProblem[] =>
  (details?.["errors"] as FieldProblem[] | undefined) ?? [{ field: root, reason: message }];

/** Runs every check, so that one error names the problems of all. */
export async function checkAll<Results extends unknown[]>(
  ...checks: { [At in keyof Results]: () => Results[At] | Promise<Results[At]> }
): Promise<Results> {
  const problems: FieldProblem[] = [];
  const results: unknown[] = [];
  for (const check of checks)
    try {
      results.push(await check());
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "INVALID_REQUEST") throw error;
      problems.push(...fieldProblemsOf(error, "body"));
    }
  if (problems.length > 0) throw fieldError("INVALID_REQUEST", problems);
  return results as Results;
}
