import { openAsBlob } from "node:fs";
import { access, constants } from "node:fs/promises";
import { basename } from "node:path";
import { UsageError } from "./errors.ts";
import { withoutControls } from "./output.ts";

const WIDTH = 24;
const REDRAW_MS = 100;
const MIB = 1024 * 1024;

/** A bar on standard error, or nothing where no person looks. Without a total it counts. */
export class Progress {
  readonly #label: string;
  readonly #total: number | undefined;
  readonly #isShown = process.stderr.isTTY === true;
  #bytes = 0;
  #drawnAt = 0;

  constructor(label: string, total?: number) {
    this.#label = withoutControls(label);
    this.#total = total;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (!this.#isShown || Date.now() - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = Date.now();
    process.stderr.write(`\r\x1b[K${this.#label}  ${this.#bar()}`);
  }

  /** A second try sends everything again. */
  restart(): void {
    this.#bytes = 0;
  }

  end(): void {
    if (this.#drawnAt > 0) process.stderr.write("\r\x1b[K");
    this.#drawnAt = 0;
  }

  #bar(): string {
    const done = `${(this.#bytes / MIB).toFixed(1)} MiB`;
    if (!this.#total) return done;
    const part = Math.min(1, this.#bytes / this.#total);
    const filled = Math.round(part * WIDTH);
    return `${"█".repeat(filled)}${"░".repeat(WIDTH - filled)} ${Math.floor(part * 100)} %, ${done}`;
  }
}

/** For `openUpload`: the largest file at 1 Mbit/s. */
export const UPLOAD = { timeoutMs: 600_000 };

/** The file of a path, which counts its bytes while it is sent. */
export async function openUpload(
  path: string,
  name = basename(path),
): Promise<{ file: File; progress: Progress }> {
  const file = new File([await openBlob(path)], name);
  const progress = new Progress(name, file.size);
  // fetch reads a file by this method, in a form and alone.
  const stream = () => {
    progress.restart();
    return File.prototype.stream.call(file).pipeThrough(countBytes(progress));
  };
  Object.defineProperty(file, "stream", { value: stream });
  return { file, progress };
}

async function openBlob(path: string): Promise<Blob> {
  try {
    // Names the reason, which openAsBlob does not.
    await access(path, constants.R_OK);
    return await openAsBlob(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UsageError(`Cannot read ${path} (${code ?? message})`, "Name a file that exists.");
  }
}

/** Passes bytes on, and shows how many. */
export const countBytes = (progress: Progress) =>
  new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      progress.add(chunk.byteLength);
      controller.enqueue(chunk);
    },
  });
