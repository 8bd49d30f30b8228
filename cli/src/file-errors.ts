import { UsageError } from "./errors.ts";

const CANNOT_WRITE: ReadonlySet<string> = new Set([
  "EACCES",
  "EDQUOT",
  "EEXIST",
  "EISDIR",
  "ENOENT",
  "ENOSPC",
  "ENOTDIR",
  "EPERM",
  "EROFS",
]);

/** Errors of the disk as what to do about them. `path` is what the user knows, not a temporary file. */
export function toFileError(
  error: unknown,
  path: string,
  fix = "Use a folder that you may write, with free space.",
): unknown {
  const { code } = error as NodeJS.ErrnoException;
  if (!code || !CANNOT_WRITE.has(code)) return error;
  return new UsageError(`Cannot write ${path} (${code})`, fix);
}
