import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import {
  allowTime,
  countSums,
  deleteMovements,
  deleteWrongSums,
  drawSums,
  holdSums,
  insertMissingSums,
} from "./rebuild-queries.ts";

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
export async function rebuildSums(ctx: Context): Promise<Rebuilt> {
  const client = await ctx.pool.connect();
  try {
    // Before the snapshot is taken, and in a session of its own: what is folded after it would be folded twice.
    await holdSums(client);
    return await ctx.db.transaction().setIsolationLevel("repeatable read").execute(drawAnew);
  } finally {
    // Not back to the pool: the connection holds the lock, and goes with it.
    client.release(true);
  }
}

/** In the caller's transaction, which sees nothing that others do meanwhile. */
export async function drawAnew(tx: Tx): Promise<Rebuilt> {
  await allowTime(tx);
  await drawSums(tx);
  await deleteMovements(tx);
  const removed = await deleteWrongSums(tx);
  const changed = await insertMissingSums(tx);
  return { sums: await countSums(tx), changed, removed };
}
