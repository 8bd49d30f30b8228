import { lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** An upload takes minutes: what lay still for so long is that of a process that was killed. */
const STALE_AFTER_MS = 3_600_000;

/** Removes what killed processes left of uploads in a folder, now and, while it is asked, every hour. */
export function staleUploadRemover(folder: string, isOurs: (name: string) => boolean): () => Promise<void> {
  let lookedAt = 0;
  return async () => {
    if (Date.now() - lookedAt < STALE_AFTER_MS) return;
    lookedAt = Date.now();
    for (const name of (await readdir(folder)).filter(isOurs)) await removeIfStale(join(folder, name));
  };
}

async function removeIfStale(path: string): Promise<void> {
  try {
    const { mtimeMs } = await lstat(path);
    if (Date.now() - mtimeMs > STALE_AFTER_MS) await rm(path, { recursive: true, force: true });
  } catch {
    // Its process took it away just now, or it belongs to somebody else on this machine.
  }
}
