import { createWriteStream } from "node:fs";
import { access, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { readPassphrase } from "../../core/config/config.ts";
import { type BackupOptions, type BackupResult, backUp, type Installation } from "../backup/backup.ts";

export const STDOUT = "-";
const OWNER_ONLY = 0o600;

/** For example stoa-2026-11-21T16-35-03Z.tar.gz. */
export const backupFileName = (now: Date, suffix?: string) =>
  `stoa-${now.toISOString().slice(0, 19).replaceAll(":", "-")}Z${suffix === undefined ? "" : `-${suffix}`}.tar.gz`;

/** Without a file, writes to one in this folder; `-` is stdout. */
export async function backUpToFile(
  shop: Installation,
  requestedFile: string | undefined,
): Promise<BackupResult & { file: string }> {
  const options = { passphrase: readPassphrase(), now: new Date() };
  const file = requestedFile ?? backupFileName(options.now);
  if (file === STDOUT)
    return { file, ...(await backUp(shop, { stream: process.stdout, end: false }, options)) };
  return { file, ...(await writeBackupFile(shop, file, options)) };
}

/** The name until the backup is complete. */
export const partOf = (file: string) => `${file}.part`;

/** The file appears when the backup is complete. */
export async function writeBackupFile(
  shop: Installation,
  file: string,
  options: BackupOptions,
): Promise<BackupResult> {
  await mustNotExist(file);
  const part = partOf(file);
  await rm(part, { force: true });
  try {
    const stream = createWriteStream(part, { mode: OWNER_ONLY, flush: true });
    const result = await backUp(shop, { stream, end: true }, options);
    await rename(part, file);
    await syncFolder(dirname(resolve(file)));
    return result;
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
