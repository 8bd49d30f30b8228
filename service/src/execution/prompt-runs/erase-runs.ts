import type { Context } from "../../core/context.ts";
import type { Queries } from "../../platform/db/database.ts";
import { eraseExecutionsOfUser } from "../executions/queries.ts";
import { eraseKeysOfUser } from "../provider-keys/queries.ts";

/** Erases the secrets of the provider keys and the texts of all executions of an account that closes. Its runs were canceled before. */
export async function eraseRunsOfUser(ctx: Context, db: Queries, userId: string): Promise<void> {
  await eraseKeysOfUser(db, userId, ctx.now());
  await eraseExecutionsOfUser(db, userId, ctx.now());
}
