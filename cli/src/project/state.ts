import { open, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { CommandError, UsageError } from "../errors.ts";
import { kindOf, replaceFile, toFileError } from "./files.ts";
import type { Fields } from "./product-fields.ts";

/** Fingerprints at the last pull or push. They differ where the service stores another spelling. */
interface SyncedField {
  local?: string | undefined;
  remote?: string | undefined;
}

export interface SyncedImage {
  /** null: the upload began, and its response has not arrived. */
  id: string | null;
  sha256: string;
  alt: string;
  /** As the service stores it. */
  remoteAlt: string;
}

/** What a folder remembers of its product on the service. */
export interface ProjectState {
  baseUrl: string;
  id?: string | undefined;
  /** A request that creates the product. It is repeated unchanged until its response arrives, so that it creates one product. */
  creation?: { idempotencyKey: string; fields: Fields; at: string } | undefined;
  fields: Record<string, SyncedField>;
  /** SHA-256 by name. */
  files: Record<string, string>;
  images: Record<string, SyncedImage>;
}

const FOLDER = ".stoa";
const statePath = (folder: string) => join(folder, FOLDER, "product.json");

export const newState = (baseUrl: string, id?: string): ProjectState => ({
  baseUrl,
  id,
  fields: {},
  files: {},
  images: {},
});

/** undefined: the folder has no product on a service yet. */
export async function readState(folder: string, baseUrl: string): Promise<ProjectState | undefined> {
  const path = statePath(folder);
  await kindOf(join(folder, FOLDER));
  if ((await kindOf(path)) === null) return undefined;
  let stored: Partial<ProjectState>;
  try {
    stored = JSON.parse(await readFile(path, "utf8")) as Partial<ProjectState>;
  } catch {
    throw new UsageError(
      `${path} is not JSON`,
      "Restore it, or delete it and run `stoa products pull <id> --force`.",
    );
  }
  if (stored.baseUrl !== baseUrl)
    throw new UsageError(
      `This folder belongs to a product of ${stored.baseUrl}, and you use ${baseUrl}`,
      "Choose the profile of that service, or copy the folder without .stoa.",
    );
  return { ...newState(baseUrl), ...stored };
}

export const writeState = (folder: string, state: ProjectState): Promise<void> =>
  replaceFile(statePath(folder), `${JSON.stringify(state, null, 2)}\n`);

/** Runs work that no other command in the same folder may disturb. */
export async function withLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const path = join(folder, FOLDER, "lock");
  await lock(path);
  try {
    return await work();
  } finally {
    await rm(path, { force: true });
  }
}

async function lock(path: string): Promise<void> {
  const ignored = join(dirname(path), ".gitignore");
  // Creates the folder too.
  if ((await kindOf(ignored)) === null) await replaceFile(ignored, "lock\n*.tmp\n");
  for (let attempt = 0; ; attempt++) {
    try {
      const file = await open(path, "wx");
      await file.writeFile(String(process.pid));
      await file.close();
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw toFileError(error);
    }
    const pid = Number(await readFile(path, "utf8").catch(() => ""));
    if (attempt > 0 || isRunning(pid))
      throw new CommandError(
        "Another stoa command works in this folder",
        `Wait for it. If none runs, delete ${path}.`,
      );
    await rm(path, { force: true });
  }
}

/** A lock without a number was just created. */
function isRunning(pid: number): boolean {
  if (pid === 0) return true;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
