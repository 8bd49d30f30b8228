import type { Queries } from "../../platform/db/database.ts";
import { listKeptBlobs } from "./queries.ts";

export { BLOBS_LOCK } from "./queries.ts";

const AT_ONCE = 500;

/** All bytes that are kept, by the names that the storage knows; some of them may be on their way to it still. */
export async function* keptBlobs(db: Queries) {
  let after = "";
  for (;;) {
    const blobs = await listKeptBlobs(db, after, AT_ONCE);
    yield* blobs;
    const last = blobs.at(-1);
    if (!last || blobs.length < AT_ONCE) return;
    after = last.name;
  }
}
