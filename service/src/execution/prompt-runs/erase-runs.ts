import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import {
  type AccountCancelReason,
  eraseExecutionsOfUser,
  requestCancelByUser,
} from "../executions/queries.ts";
import { eraseKeysOfUser } from "../provider-keys/queries.ts";

/** Of all that they run: where it does, it ends, and says this reason. */
export const cancelRunsOfUser = (ctx: Context, db: Queries, userId: string, reason: AccountCancelReason) =>
  requestCancelByUser(db, userId, reason, ctx.now());

/** Of an account that closes: no secret of its provider keys stays, and no text that it ran. It was asked to cancel what runs. */
export async function eraseRunsOfUser(ctx: Context, db: Queries, userId: string): Promise<void> {
  await eraseKeysOfUser(db, userId, ctx.now());
  await eraseExecutionsOfUser(db, userId, ctx.now());
}
