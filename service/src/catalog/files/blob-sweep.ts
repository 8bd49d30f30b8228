import type { Context } from "../../core/context.ts";
import { deleteBlob, listUnreferencedBlobs, markUnreferencedBlobs, tryLockBlobs } from "./queries.ts";

/** An upload refers to its bytes within minutes of keeping them. */
const GRACE_HOURS = 24;
const BATCH_SIZE = 500;

/**
 * Removes bytes that nobody refers to any more. First they lose their key, so that the same bytes that come in now get a
 * name of their own; then they are removed, and last their row: a process that is killed leaves work for the next one.
 */
export async function sweepBlobs(ctx: Context): Promise<void> {
  const cutoff = new Date(ctx.now().getTime() - GRACE_HOURS * 3_600_000);
  await ctx.db.transaction().execute(async (tx) => {
    // While a backup runs, what it found must stay; the next round is an hour away.
    if (await tryLockBlobs(tx)) await markUnreferencedBlobs(tx, cutoff);
  });
  for (;;) {
    const condemned = await listUnreferencedBlobs(ctx.db, BATCH_SIZE);
    for (const { name } of condemned) {
      await ctx.integrations.storage.remove(name);
      await deleteBlob(ctx.db, name);
    }
    if (condemned.length < BATCH_SIZE) return;
  }
}
