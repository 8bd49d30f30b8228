import type { Context } from "../../core/context.ts";
import type { Tx } from "../../platform/db/database.ts";
import { type LockWait, withLock } from "../../platform/db/locks.ts";
import {
  allowTime,
  countSums,
  deleteMovements,
  deleteWrongSums,
  drawSums,
  insertMissingSums,
} from "./rebuild-queries.ts";
import { SUMS_LOCK } from "./sums-queries.ts";

/** As long as a round, or another rebuild of a large shop, may take. */
const WAIT: LockWait = { maxMs: 60_000 };

export interface Rebuilt {
  /** How many sums there are now. */
  sums: number;
  /** How many of them were wrong or missing, those too that only waited to be folded. */
  changed: number;
  /** How many there were of which the books know nothing. */
  removed: number;
}

/**
 * Makes all sums anew from the books, and writes those that differ. Sales go on meanwhile: the snapshot has each of them both in the
 * books and in the movements, or in neither.
 */
export const rebuildSums = (ctx: Context): Promise<Rebuilt> =>
  // Before the snapshot is taken, and by a connection of its own: what is folded after it would be folded twice.
  withLock(ctx.connection, { key: SUMS_LOCK, name: "the lock on sums of sales" }, WAIT, (mustBeHeld) =>
    ctx.db
      .transaction()
      .setIsolationLevel("repeatable read")
      .execute(async (tx) => {
        const rebuilt = await drawAnew(tx);
        await mustBeHeld();
        return rebuilt;
      }),
  );

/** In the caller's transaction, which sees nothing that others do meanwhile. */
export async function drawAnew(tx: Tx): Promise<Rebuilt> {
  await allowTime(tx);
  await drawSums(tx);
  await deleteMovements(tx);
  const removed = await deleteWrongSums(tx);
  const changed = await insertMissingSums(tx);
  return { sums: await countSums(tx), changed, removed };
}
