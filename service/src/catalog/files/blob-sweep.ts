import type { Context } from "../../core/context.ts";
import { deleteBlob, listUnreferencedBlobs, markUnreferencedBlobs, tryLockBlobs } from "./queries.ts";

/** An upload references its bytes within minutes of storing them. */
const GRACE_HOURS = 24;
const BATCH_SIZE = 500;

/**
 * Deletes unreferenced bytes in three steps: clear their key, so that a new upload of the same bytes gets another name;
 * delete the bytes; delete the row. A killed process leaves work for the next run.
 */
export async function sweepBlobs(ctx: Context): Promise<void> {
  const cutoff = new Date(ctx.now().getTime() - GRACE_HOURS * 3_600_000);
  await ctx.db.transaction().execute(async (tx) => {
    // A running backup needs the bytes that it has listed. The next run is an hour away.
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
