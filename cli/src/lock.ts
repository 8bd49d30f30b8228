import { randomBytes } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { CommandError } from "./errors.ts";

const POLL_MS = 25;

/** The locks of this process. A killed process may have had the same number, as in containers. */
const owned = new Set<string>();

/**
 * Takes a lock file, whose text is the process and a random owner. That of a process that was killed is taken over. Returns what
 * gives it back. Throws `toError` of the process that holds it after `waitMs`.
 */
export async function acquireLock(
  path: string,
  waitMs: number,
  toError: (pid: number) => Error = () =>
    new CommandError("Another stoa command is at work here", `Wait for it. If none runs, delete ${path}.`),
): Promise<() => Promise<void>> {
  const owner = `${process.pid} ${randomBytes(8).toString("hex")}`;
  const draft = `${path}.${owner.split(" ")[1]}`;
  const giveUpAt = Date.now() + waitMs;
  // Linked when it is complete, so that no lock is without its owner.
  await writeFile(draft, owner, { mode: 0o600 });
  owned.add(owner);
  try {
    while (!(await tryLink(draft, path))) {
      const held = await readFile(path, "utf8").catch(() => "");
      const pid = Number(held.split(" ")[0]);
      const isHeld = pid === process.pid ? owned.has(held) : isRunning(pid);
      if (held !== "" && !isHeld) await removeIf(path, held);
      else if (Date.now() >= giveUpAt) throw toError(pid);
      else await sleep(POLL_MS);
    }
  } catch (error) {
    owned.delete(owner);
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
  return async () => {
    await removeIf(path, owner);
    owned.delete(owner);
  };
}

async function tryLink(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Only the lock that was read: another command may have taken it since. */
async function removeIf(path: string, owner: string): Promise<void> {
  if ((await readFile(path, "utf8").catch(() => "")) === owner) await rm(path, { force: true });
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
