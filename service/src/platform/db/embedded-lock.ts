import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";

/** A lock on a file: one holder at a time, whatever the process. */
export interface FileLock {
  release(): void;
}

const SQLITE_BUSY = 5;
const POLL_MS = 15;

// The kernel keeps the lock, so it goes with its process, kill -9 included: no pid to judge, no stale file to
// steal from someone who was quicker. Node has no flock; an empty SQLite file is how it reaches the same thing.
// (POSIX drops such a lock when the holder opens and closes the file by other means: leave these files alone.)
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

/** Held by several at once, while nobody has it alone. Only under a lock of all changes: it waits for nobody. */
export function acquireSharedLock(file: string): FileLock {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = MEMORY; BEGIN; SELECT count(*) FROM sqlite_schema");
  return { release: () => database.isOpen && database.close() };
}

/** Waits for the lock; undefined when patience ends first. */
export async function waitForLock(file: string, patienceMs: number): Promise<FileLock | undefined> {
  const giveUpAt = Date.now() + patienceMs;
  for (;;) {
    const lock = tryFileLock(file);
    if (lock || Date.now() > giveUpAt) return lock;
    await sleep(POLL_MS);
  }
}

/** Runs the work alone, after whoever holds the lock is done. */
export async function withFileLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const lock = await waitForLock(file, Number.POSITIVE_INFINITY);
  return work().finally(() => lock?.release());
}
