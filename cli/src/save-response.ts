import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { Cli } from "./cli.ts";
import { CommandError } from "./errors.ts";
import { toFileError } from "./file-errors.ts";
import { countBytes, Progress } from "./progress.ts";

/** Writes an export to a file, or to standard output without one. */
export async function saveResponse(
  { output, signal }: Cli,
  { body }: Response,
  { path, label }: { path: string | undefined; label: string },
): Promise<void> {
  const progress = new Progress(path ?? label);
  const source = (body ?? new Blob([]).stream()) as ReadableStream<Uint8Array>;
  const bytes = Readable.fromWeb(source.pipeThrough(countBytes(progress)));
  try {
    if (path === undefined) await pipeline(bytes, process.stdout, { end: false });
    else await writeWhole(path, bytes);
  } catch (error) {
    if (signal.aborted) throw error;
    const refusal = toFileError(error, path ?? "the output", "Name a file that you may write.");
    if (refusal !== error) throw refusal;
    throw new CommandError(`The export was cut off: ${(error as Error).message}`, "Repeat the command.");
  } finally {
    progress.end();
  }
  if (path !== undefined) output.report(`Wrote ${path}.`);
}

/** A file that was cut off must not look complete. */
async function writeWhole(path: string, bytes: Readable): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    await pipeline(bytes, createWriteStream(temporary, { flags: "wx" }));
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}
