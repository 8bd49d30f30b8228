import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type LockWait, withLock } from "../../platform/db/locks.ts";
import {
  computeDueSums,
  countSums,
  deleteMovements,
  deleteWrongSums,
  insertMissingSums,
  liftTimeouts,
} from "./rebuild-queries.ts";
import { SUMS_LOCK } from "./sales-sums-queries.ts";

/** As long as a round, or another rebuild of a large shop, may take. */
const LOCK_WAIT: LockWait = { maxMs: 60_000 };

export interface RebuildResult {
  /** How many sums there are now. */
  sums: number;
  /** How many of them were wrong or missing, those too that only waited to be rolled up. */
  changed: number;
  /** How many there were of which the ledger knows nothing. */
  removed: number;
}

/**
 * Makes all sums anew from the ledger, and writes those that differ. Sales go on meanwhile: the snapshot has each of them both in the
 * books and in the movements, or in neither.
 */
export const rebuildSums = (ctx: Context): Promise<RebuildResult> =>
  // Before the snapshot is taken, and by a connection of its own: what is rolled up after it would be counted twice.
  withLock(ctx.connection, { key: SUMS_LOCK, name: "the lock on sums of sales" }, LOCK_WAIT, (mustBeHeld) =>
    ctx.db
      .transaction()
      .setIsolationLevel("repeatable read")
      .execute(async (tx) => {
        const rebuilt = await rebuildSumsIn(tx);
        await mustBeHeld();
        return rebuilt;
      }),
  );

/** In the caller's transaction, which sees nothing that others do meanwhile. */
export async function rebuildSumsIn(tx: Tx): Promise<RebuildResult> {
  await liftTimeouts(tx);
  await computeDueSums(tx);
  await deleteMovements(tx);
  const removed = await deleteWrongSums(tx);
  const changed = await insertMissingSums(tx);
  return { sums: await countSums(tx), changed, removed };
}
