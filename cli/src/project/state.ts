import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { UsageError } from "../errors.ts";
import { toFileError } from "../file-errors.ts";
import { acquireLock } from "../lock.ts";
import { withoutControls } from "../output.ts";
import { isAttachmentName } from "./attachments.ts";
import { kindOf, replaceFile } from "./files.ts";
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
  files: Object.create(null),
  images: Object.create(null),
});

/** undefined: the folder has no product on a service yet. */
export async function readState(folder: string, baseUrl: string): Promise<ProjectState | undefined> {
  const path = statePath(folder);
  await kindOf(join(folder, FOLDER));
  if ((await kindOf(path)) === null) return undefined;
  const stored = parseState(path, await readFile(path, "utf8"));
  if (stored.baseUrl !== baseUrl)
    throw new UsageError(
      `This folder belongs to a product of ${stored.baseUrl}, and you use ${baseUrl}`,
      "Choose the profile of that service, or copy the folder without .stoa.",
    );
  return stored;
}

/** A project that was cloned from elsewhere can hold any state. */
function parseState(path: string, text: string): ProjectState {
  const refuse = (problem: string) => {
    throw new UsageError(
      `${path} ${problem}`,
      "Restore it, or delete it and run `stoa products pull <id> --force`.",
    );
  };
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    refuse("is not JSON");
  }
  if (!isRecord(stored) || !isRecord(stored["fields"] ?? {})) return refuse("is no state of a product");
  const { files = {}, images = {} } = stored;
  for (const [group, isValid] of [
    [files, (value: unknown) => typeof value === "string"],
    [images, isSyncedImage],
  ] as const) {
    if (!isRecord(group)) return refuse("is no state of a product");
    for (const [name, value] of Object.entries(group))
      if (!isAttachmentName(name) || !isValid(value))
        refuse(`names a file that no product has: ${withoutControls(JSON.stringify(name))}`);
  }
  return {
    ...newState(""),
    ...stored,
    files: withoutPrototype(files),
    images: withoutPrototype(images),
  } as ProjectState;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isSyncedImage = (value: unknown): boolean =>
  isRecord(value) &&
  (value["id"] === null || typeof value["id"] === "string") &&
  ["sha256", "alt", "remoteAlt"].every((name) => typeof value[name] === "string");

/** A file may be called `constructor`. */
const withoutPrototype = (values: unknown): object => Object.assign(Object.create(null), values);

export const writeState = (folder: string, state: ProjectState): Promise<void> =>
  replaceFile(statePath(folder), `${JSON.stringify(state, null, 2)}\n`);

/** Runs work that no other command in the same folder may disturb. */
export async function withLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const release = await lock(folder);
  try {
    return await work();
  } finally {
    await release();
  }
}

async function lock(folder: string): Promise<() => Promise<void>> {
  const state = join(folder, FOLDER);
  // A link may lead out of the folder, where nothing may be written.
  await kindOf(state);
  const ignored = join(state, ".gitignore");
  // Creates the folder too.
  if ((await kindOf(ignored)) === null) await replaceFile(ignored, "lock*\n*.tmp\n");
  try {
    return await acquireLock(join(state, "lock"), 0);
  } catch (error) {
    throw toFileError(error, state);
  }
}
