import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** An upload takes minutes: older files are from killed processes. */
const STALE_AFTER_MS = 3_600_000;

/** Returns a function that removes the uploads of killed processes, at most once an hour. */
export function staleUploadRemover(folder: string, isOurs: (name: string) => boolean): () => Promise<void> {
  let checkedAt = 0;
  return async () => {
    if (Date.now() - checkedAt < STALE_AFTER_MS) return;
    checkedAt = Date.now();
    for (const name of (await readdir(folder)).filter(isOurs)) await removeIfStale(join(folder, name));
  };
}

async function removeIfStale(path: string): Promise<void> {
  try {
    const { mtimeMs } = await lstat(path);
    if (Date.now() - mtimeMs > STALE_AFTER_MS) await rm(path, { recursive: true, force: true });
  } catch {
    // Its process just removed it, or it belongs to another user of this machine.
  }
}
