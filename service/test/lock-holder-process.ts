/** Holds a lock in a process of its own until it is killed. */
import type { Connection } from "../src/platform/db/database.ts";
import { type Lock, withLock } from "../src/platform/db/locks.ts";

export interface LockHolderOptions {
  connection: Connection;
  lock: Lock;
}

process.once("message", async ({ connection, lock }: LockHolderOptions) => {
  await withLock(connection, lock, { maxMs: 10_000 }, async () => {
    process.send!("held");
    await new Promise<never>(() => {});
  });
});

// The parent has ended.
process.once("disconnect", () => process.exit());
