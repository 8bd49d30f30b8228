import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { eraseExecutionsOf, type LeavingReason, requestCancelOfUser } from "../executions/queries.ts";
import { eraseKeysOf } from "../provider-keys/queries.ts";

/** Of all that they run: where it does, it ends, and says this reason. */
export const askToCancelAllOf = (ctx: Context, db: Queries, userId: string, reason: LeavingReason) =>
  requestCancelOfUser(db, userId, reason, ctx.now());

/** Of an account that closes: no secret of its provider keys stays, and no text that it ran. It was asked to cancel what runs. */
export async function forgetAllRuns(ctx: Context, db: Queries, userId: string): Promise<void> {
  await eraseKeysOf(db, userId, ctx.now());
  await eraseExecutionsOf(db, userId, ctx.now());
}
