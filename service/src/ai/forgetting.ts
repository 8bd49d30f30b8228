import type { Context } from "../context.ts";
import type { Queries } from "../db/database.ts";
import { eraseAllOf } from "./queries.ts";

/** Of an account that closes: no secret of its provider keys stays, and no text that it ran, not even of what still runs. */
export const forgetAllRuns = (ctx: Context, db: Queries, userId: string) => eraseAllOf(db, userId, ctx.now());
