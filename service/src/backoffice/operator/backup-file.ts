import { createWriteStream } from "node:fs";
import { access, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { readPassphrase } from "../../core/config/config.ts";
import { type BackupResult, backUp } from "../backup/backup.ts";
import type { OperatorDatabase } from "./operator-database.ts";

export const STDOUT = "-";
const OWNER_ONLY = 0o600;

/** For example stoa-2026-11-21T16-35-03Z.tar.gz. */
const defaultFileName = (now: Date) => `stoa-${now.toISOString().slice(0, 19).replaceAll(":", "-")}Z.tar.gz`;

/** The file appears when the backup is complete. Without a file, writes to stdout. */
export async function backUpToFile(
  database: OperatorDatabase,
  requestedFile: string | undefined,
): Promise<BackupResult & { file: string }> {
  const now = new Date();
  const passphrase = readPassphrase();
  const file = requestedFile ?? defaultFileName(now);
  if (file === STDOUT)
    return { file, ...(await backUp(database, { stream: process.stdout, end: false }, { passphrase, now })) };
  await mustNotExist(file);
  // A temporary name until the backup is complete.
  const part = `${file}.part`;
  await rm(part, { force: true });
  try {
    const stream = createWriteStream(part, { mode: OWNER_ONLY, flush: true });
    const result = await backUp(database, { stream, end: true }, { passphrase, now });
    await rename(part, file);
    await syncFolder(dirname(resolve(file)));
    return { file, ...result };
  } finally {
    await rm(part, { force: true });
  }
}

async function mustNotExist(file: string): Promise<void> {
  const isThere = await access(file).then(
    () => true,
    () => false,
  );
  if (isThere) throw new Error(`${file} already exists: name another file.`);
}

/** Makes the rename durable. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  await folder.sync();
  await folder.close();
}
