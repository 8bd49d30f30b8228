import type { Queries } from "../../platform/db/database.ts";
import { listBlobs } from "./queries.ts";

export { BLOBS_LOCK } from "./queries.ts";

const BATCH_SIZE = 500;

/** All stored blobs by their storage names. Some may still be uploading. */
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
