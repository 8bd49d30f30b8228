import type { DatabaseReport } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { readDisk } from "./health.ts";
import { findOldestTransaction, listLargestTables, readServer } from "./queries.ts";

export async function readDatabaseReport(ctx: Context): Promise<DatabaseReport> {
  const { version, size, ...connections } = await readServer(ctx.pool);
  const oldest = await findOldestTransaction(ctx.pool);
  return {
    ...{ version, size, connections },
    disk: await readDisk(ctx),
    oldestTransaction: oldest && { ...oldest, startedAt: oldest.startedAt.toISOString() },
    tables: await listLargestTables(ctx.pool),
  };
}
