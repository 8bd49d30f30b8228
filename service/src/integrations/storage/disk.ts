import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { access, constants, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { staleUploadRemover } from "./stale-uploads.ts";
import { digestIn, type Range, type Storage, StorageUnavailable } from "./storage.ts";

const OWNER_ONLY = 0o700;

/** Stores bytes in a folder of this machine, which no web server serves. */
export function createDiskStorage(folder: string): Storage {
  const incoming = join(folder, "incoming");
  const removeLeftovers = staleUploadRemover(incoming, () => true);
  // 256 folders, because file systems are slow with a million names in one.
  const pathOf = (name: string) => join(folder, digestIn(name).slice(0, 2), name);
  return {
    async incoming() {
      await makeFolder(incoming);
      await removeLeftovers();
      return incoming;
    },
    async put(name, source) {
      const path = pathOf(name);
      await makeFolder(dirname(path));
      const temporary = Buffer.isBuffer(source)
        ? join(await makeFolder(incoming), randomUUID())
        : source.path;
      if (Buffer.isBuffer(source)) await writeNew(temporary, source);
      await sync(temporary);
      // Atomic: readers see no file or the complete one, whenever the machine fails.
      await rename(temporary, path);
      await sync(dirname(path));
    },
    has: async (name) => exists(pathOf(name)),
    get: (name, range) => read(pathOf(name), range),
    remove: (name) => rm(pathOf(name), { force: true }),
    async check() {
      try {
        await access(await makeFolder(folder), constants.R_OK | constants.W_OK);
        return `files are stored in ${folder}`;
      } catch (error) {
        throw new StorageUnavailable((error as Error).message);
      }
    },
    close: async () => {},
  };
}

async function makeFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: OWNER_ONLY });
  return folder;
}

async function writeNew(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(bytes);
  } finally {
    await file.close();
  }
}

/** Flushes a file's bytes, or a folder's names. */
async function sync(path: string): Promise<void> {
  const file = await open(path, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

const read = async (path: string, range: Range | undefined): Promise<Readable | null> =>
  (await exists(path)) ? createReadStream(path, range ?? {}) : null;
