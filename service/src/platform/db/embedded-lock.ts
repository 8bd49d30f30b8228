import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";

/** An exclusive lock on a file, across processes. */
export interface FileLock {
  release(): void;
}

const SQLITE_BUSY = 5;
const POLL_MS = 15;

// The kernel releases the lock with its process, also on kill -9, so there are no stale lock files. Node has no flock; an
// exclusive transaction on an empty SQLite file uses the kernel's lock. POSIX drops such a lock when its holder opens and
// closes the file otherwise: do not open these files.
export function tryFileLock(file: string): FileLock | undefined {
  const database = new DatabaseSync(file);
  try {
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return { release: () => database.isOpen && database.close() };
  } catch (error) {
    database.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
}

/** A shared lock, without waiting. Call it only while holding the change lock. */
export function acquireSharedLock(file: string): FileLock {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = MEMORY; BEGIN; SELECT count(*) FROM sqlite_schema");
  return { release: () => database.isOpen && database.close() };
}

/** undefined: the lock was not free within `patienceMs`. */
export async function waitForLock(file: string, patienceMs: number): Promise<FileLock | undefined> {
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    const lock = tryFileLock(file);
    if (lock || Date.now() > giveUpAt) return lock;
    await sleep(POLL_MS);
  }
}

export async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = await waitForLock(file, Number.POSITIVE_INFINITY);
  return work().finally(() => lock?.release());
}
