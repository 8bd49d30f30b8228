import type { Context } from "../../core/context.ts";
import { RawPage } from "../../platform/http/envelope.ts";
import { listTags as listRows, type TagQuery } from "./queries.ts";

export const listTags = (ctx: Context, query: TagQuery): Promise<RawPage> =>
  ctx.listCache.get(`tags ${JSON.stringify(query)}`, async () => new RawPage(await listRows(ctx.db, query)));
