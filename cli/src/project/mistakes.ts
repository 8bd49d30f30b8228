import type { Cli } from "../cli.ts";
import { CommandError } from "../errors.ts";
import { withoutControls } from "../output.ts";
import type { ProductFile } from "./product-file.ts";

interface Refusal {
  status?: number;
  message: string;
  requestId?: string | null;
  details?: { field?: string; reason?: string; errors?: { field: string; reason: string }[] };
}

/** What the service refuses, with the file and the line. */
class ProductMistakes extends CommandError {
  readonly details: { errors: { field: string; reason: string }[] };
  readonly requestId: string | null;

  constructor(file: ProductFile, refusal: Refusal, problems: { field: string; reason: string }[]) {
    super(`The service refuses ${file.name}`, `Correct ${file.name}, then repeat the command.`);
    this.requestId = refusal.requestId ?? null;
    this.details = {
      errors: problems.map(({ field, reason }) => ({
        field: `${file.name}:${file.lineOf(field)}`,
        reason: `${field} ${reason}`,
      })),
    };
  }
}

/** Runs work whose refusals concern the file. */
export async function withMistakesAtLines<T>(file: ProductFile, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const refusal = error as Refusal;
    const { field, reason, errors } = refusal.details ?? {};
    const problems = errors ?? (field !== undefined && reason !== undefined ? [{ field, reason }] : []);
    const isOfFile = refusal.status === 400 || refusal.status === 422;
    // The field of an upload is `file`.
    if (!isOfFile || problems.length === 0 || problems.some((problem) => problem.field === "file"))
      throw error;
    throw new ProductMistakes(file, refusal, problems);
  }
}

/** Likely mistakes that the service accepted. */
export function showWarnings(
  { cli, local: { file } }: { cli: Cli; local: { file: ProductFile } },
  warnings: readonly { field: string; reason: string }[],
): void {
  for (const { field, reason } of warnings)
    cli.output.report(withoutControls(`warning: ${file.name}:${file.lineOf(field)}: ${field} ${reason}`));
}
