import { ConfigError } from "../../core/config/config.ts";
import { ApiError } from "../../core/errors.ts";

/** An operator can fix these errors: their sentence is enough. All others are printed with their stack. */
export const isOperatorError = (error: unknown) =>
  error instanceof ConfigError ||
  error instanceof ApiError ||
  ["LockHeld", "MigrationMismatch", "WrongInstallation", "Error"].includes((error as Error).name);

export function exitWithError(error: unknown): never {
  console.error(isOperatorError(error) ? (error as Error).message : error);
  process.exit(1);
}
