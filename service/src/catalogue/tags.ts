import type { Context } from "../context.ts";
import { listTags as listRows, type TagQuery } from "./queries.ts";

/** The tags of published products with their counts, the commonest first. */
export const listTags = (ctx: Context, query: TagQuery) => listRows(ctx.db, query);
