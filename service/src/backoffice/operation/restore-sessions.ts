import { randomBytes, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Restore } from "@stoa/contract";
import { ApiError, ruleViolation } from "../../core/errors.ts";
import type { UploadedFile } from "../../platform/http/multipart.ts";

/** After this time without a part, the file is deleted: it contains a whole marketplace. */
const LIFETIME_MS = 60 * 60_000;
const GIB = 2 ** 30;

/** Where the file is, and how far the restore is. In memory, since the restore replaces the database. */
export interface RestoreSession extends Omit<Restore, "id"> {
  readonly id: string;
  readonly path: string;
  /** Parts are written one after the other. */
  writing: Promise<unknown>;
  expiry: NodeJS.Timeout | null;
}

/** One at a time in a process. It survives a restart of the service in this process, so that the page can read its end. */
let current: RestoreSession | null = null;

const isRunning = ({ status }: RestoreSession) => status === "running" || status === "restarting";

/** Parallel calls open one after the other, so that each file has an owner that deletes it. */
let opening: Promise<unknown> = Promise.resolve();

export async function openSession(
  folder: string,
  file: Pick<Restore, "fileName" | "size">,
): Promise<RestoreSession> {
  const opened = opening.then(() => replaceSession(folder, file));
  opening = opened.catch(() => {});
  return opened;
}

async function replaceSession(
  folder: string,
  { fileName, size }: Pick<Restore, "fileName" | "size">,
): Promise<RestoreSession> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await mustHaveRoom(folder, size);
  // At once: the session could start in between.
  if (current && isRunning(current)) throw new ApiError("INVALID_STATE", "A restore is running.");
  await discardSession();
  const session: RestoreSession = {
    id: randomBytes(32).toString("base64url"),
    path: join(folder, randomUUID()),
    ...{ status: "receiving", fileName, size, received: 0, error: null, result: null },
    progress: { step: "Receiving the file", done: 0, total: size },
    writing: Promise.resolve(),
    expiry: null,
  };
  await writeFile(session.path, "", { mode: 0o600, flag: "wx" });
  current = session;
  postponeExpiry(session);
  return session;
}

async function mustHaveRoom(folder: string, size: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bavail * bsize > size) return;
  const free = ((bavail * bsize) / GIB).toFixed(1);
  throw ruleViolation("size", `is larger than the free space of the disk here, ${free} GB`);
}

function postponeExpiry(session: RestoreSession): void {
  if (session.expiry) clearTimeout(session.expiry);
  session.expiry = setTimeout(() => {
    if (current === session && !isRunning(session)) void discardSession();
  }, LIFETIME_MS).unref();
}

async function discardSession(): Promise<void> {
  const session = current;
  current = null;
  if (session) await discardFile(session);
}

export async function discardFile(session: RestoreSession): Promise<void> {
  if (session.expiry) clearTimeout(session.expiry);
  await session.writing.catch(() => {});
  await rm(session.path, { force: true });
}

export function mustFindSession(id: string): RestoreSession {
  if (!current || current.id !== id) throw new ApiError("RESTORE_NOT_FOUND");
  return current;
}

export function mustBeReceiving(session: RestoreSession): void {
  if (session.status !== "receiving")
    throw new ApiError("INVALID_STATE", "This restore takes no more parts: begin a new one.", {
      current: session.status,
    });
}

/** A part that has arrived before is ignored, so that a lost answer does no harm. */
export async function addPart(session: RestoreSession, offset: number, file: UploadedFile): Promise<void> {
  const turn = session.writing.catch(() => {}).then(() => writePart(session, offset, file));
  session.writing = turn;
  await turn;
}

async function writePart(
  session: RestoreSession,
  offset: number,
  { path, size }: UploadedFile,
): Promise<void> {
  mustBeReceiving(session);
  const end = offset + size;
  if (end <= session.received) return;
  if (offset !== session.received) throw ruleViolation("offset", `must be ${session.received}`);
  if (end > session.size)
    throw ruleViolation("file", `ends after the ${session.size} bytes of the whole file`);
  await pipeline(createReadStream(path), createWriteStream(session.path, { flags: "r+", start: offset }));
  session.received = end;
  session.progress = { ...session.progress, done: end };
  postponeExpiry(session);
}

export const toRestore = ({
  path: _path,
  writing: _writing,
  expiry: _expiry,
  ...restore
}: RestoreSession): Restore => restore;
