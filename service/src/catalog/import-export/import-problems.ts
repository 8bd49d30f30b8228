import { ApiError, type FieldProblem, fieldProblemsOf } from "../../core/errors.ts";

/** A line, and in a zip its file. */
export interface Location {
  line: number;
  file?: string;
}

export type LocatedProblem = FieldProblem & Location;

const MAX_REPORTED = 100;

const byLocation = (a: Location, b: Location) =>
  a.file === b.file ? a.line - b.line : (a.file ?? "") < (b.file ?? "") ? -1 : 1;

/** The field of a problem that concerns the whole product. */
export const WHOLE_PRODUCT = "product";

/** Collects problems by line: stores the first hundred and counts the others. */
export class ImportProblems {
  readonly #problems: LocatedProblem[] = [];
  #total = 0;
  #isMalformed = false;

  /** Adds the problems of an ApiError. Rethrows any other error, which is a defect. */
  add(error: unknown, place: (field: string) => Location): void {
    if (!(error instanceof ApiError)) throw error;
    this.#isMalformed ||= error.code === "INVALID_REQUEST";
    for (const { field, reason } of fieldProblemsOf(error, WHOLE_PRODUCT)) {
      this.#total++;
      if (this.#problems.length < MAX_REPORTED) this.#problems.push({ ...place(field), field, reason });
    }
  }

  copy(): ImportProblems {
    const copy = new ImportProblems();
    copy.#problems.push(...this.#problems);
    copy.#total = this.#total;
    copy.#isMalformed = this.#isMalformed;
    return copy;
  }

  /** Throws one error for all problems: 400 when one is a syntax problem of the file, else 422. */
  throwIfAny(): void {
    const problems = this.#problems.toSorted(byLocation);
    const [first] = problems;
    if (!first) return;
    const { line, file, field, reason } = first;
    const code = this.#isMalformed ? "INVALID_REQUEST" : "VALIDATION_ERROR";
    const message = `${file ? `${file}:` : "line "}${line}: ${field}: ${reason}`;
    throw new ApiError(code, message, { ...first, errors: problems, total: this.#total });
  }
}
