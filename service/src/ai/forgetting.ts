import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { eraseKeysOf } from "./key-queries.ts";
import { eraseExecutionsOf } from "./queries.ts";

/** Of an account that closes: no secret of its provider keys stays, and no text that it ran, not even of what still runs. */
export async function forgetAllRuns(ctx: Context, db: Queries, userId: string): Promise<void> {
  await eraseKeysOf(db, userId, ctx.now());
  await eraseExecutionsOf(db, userId, ctx.now());
}
