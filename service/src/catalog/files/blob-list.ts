import type { Queries } from "../../platform/db/database.ts";
import { listBlobs } from "./queries.ts";

export { BLOBS_LOCK } from "./queries.ts";

const BATCH_SIZE = 500;

/** All bytes that are kept, by the names that the storage knows; some of them may be on their way to it still. */
export async function* iterateBlobs(db: Queries) {
  let after = "";
  for (;;) {
    const blobs = await listBlobs(db, after, BATCH_SIZE);
    yield* blobs;
    const last = blobs.at(-1);
    if (!last || blobs.length < BATCH_SIZE) return;
    after = last.name;
  }
}
