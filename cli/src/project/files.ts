import { randomBytes } from "node:crypto";
import { lstat, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UsageError } from "../errors.ts";
import { toFileError } from "../file-errors.ts";

/** Whole or not at all. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const temporary = join(dirname(path), `.${randomBytes(6).toString("hex")}.tmp`);
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(temporary, content);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw toFileError(error, path);
  }
}

/** "file", "folder", or null where there is nothing. A link may lead out of the folder, and is refused. */
export async function kindOf(path: string): Promise<"file" | "folder" | null> {
  let found: Awaited<ReturnType<typeof lstat>>;
  try {
    found = await lstat(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return null;
    throw error;
  }
  if (found.isFile()) return "file";
  if (found.isDirectory()) return "folder";
  throw new UsageError(`${path} is neither a file nor a folder`, "Replace links by what they lead to.");
}
