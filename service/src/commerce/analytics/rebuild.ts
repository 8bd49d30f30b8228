import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type LockWait, withLock } from "../../platform/db/locks.ts";
import { raiseTransactionLimits } from "../ledger/verification-queries.ts";
import {
  computeDueSums,
  countSums,
  deleteMovements,
  deleteWrongSums,
  insertMissingSums,
} from "./rebuild-queries.ts";
import { SUMS_LOCK } from "./sales-sums-queries.ts";

/** Long enough for a roll-up or another rebuild of a large marketplace. */
const LOCK_WAIT: LockWait = { maxMs: 60_000 };

export interface RebuildResult {
  sums: number;
  /** Wrong or missing sums, including those of pending movements. */
  changed: number;
  removed: number;
}

/**
 * Recomputes all sums from the ledger. Concurrent sales are safe: the snapshot contains both the ledger entries and the movement of a
 * sale, or neither.
 */
export const rebuildSums = (ctx: Context): Promise<RebuildResult> =>
  // Acquires the lock before the snapshot and on its own connection: a roll-up after the snapshot would count movements twice.
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

/** The transaction must be at least repeatable read. */
export async function rebuildSumsIn(tx: Tx): Promise<RebuildResult> {
  await raiseTransactionLimits(tx);
  await computeDueSums(tx);
  await deleteMovements(tx);
  const removed = await deleteWrongSums(tx);
  const changed = await insertMissingSums(tx);
  return { sums: await countSums(tx), changed, removed };
}
