import { ApiError, type FieldProblem, fieldProblemsOf } from "../../core/errors.ts";

/** Where something stands: a line, and in a folder its file. */
export interface Location {
  line: number;
  file?: string;
}

/** A problem with its place. */
export type LocatedProblem = FieldProblem & Location;

const MAX_REPORTED = 100;

const byLocation = (a: Location, b: Location) =>
  a.file === b.file ? a.line - b.line : (a.file ?? "") < (b.file ?? "") ? -1 : 1;

/** The field of what is wrong with a product as a whole. */
export const WHOLE_PRODUCT = "product";

/** Everything that is wrong with a file, by its lines: the first hundred are kept, the others counted. */
export class ImportProblems {
  readonly #problems: LocatedProblem[] = [];
  #total = 0;
  #isMalformed = false;

  /** Notes what a check has found; anything but a refusal is a defect and goes on. */
  add(error: unknown, place: (field: string) => Location): void {
    if (!(error instanceof ApiError)) throw error;
    this.#isMalformed ||= error.code === "INVALID_REQUEST";
    for (const { field, reason } of fieldProblemsOf(error, WHOLE_PRODUCT)) {
      this.#total++;
      if (this.#problems.length < MAX_REPORTED) this.#problems.push({ ...place(field), field, reason });
    }
  }

  /** With what is found later, these stay as they are. */
  copy(): ImportProblems {
    const copy = new ImportProblems();
    copy.#problems.push(...this.#problems);
    copy.#total = this.#total;
    copy.#isMalformed = this.#isMalformed;
    return copy;
  }

  /** One answer for all of them: 400 when any is of the file itself, 422 when all are of rules that it meets here. */
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
