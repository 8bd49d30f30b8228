import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { childrenOf, memoryOf } from "./memory.ts";
import type { Shop } from "./shop.ts";

const LARGEST = 10;

export interface Space {
  nodeBytes: number;
  nodePrivateBytes: number;
  postgresBytes: number;
  databaseBytes: number;
  /** Tables without their indexes, and indexes, largest first. */
  largest: { name: string; bytes: number }[];
}

/** Memory and disk space of the service and its database. */
export async function measureSpace(shop: Shop, pool: pg.Pool): Promise<Space> {
  const node = await memoryOf(shop.pid);
  const { rows: sizes } = await pool.query<{ bytes: number }>(
    "select pg_database_size(current_database()) as bytes",
  );
  const { rows: largest } = await pool.query<{ name: string; bytes: number }>(
    `select oid::regclass::text as name,
            case relkind when 'r' then pg_table_size(oid) else pg_relation_size(oid) end as bytes
       from pg_class where relkind in ('r', 'i') order by bytes desc, name limit ${LARGEST}`,
  );
  return {
    nodeBytes: node.rssBytes,
    nodePrivateBytes: node.privateBytes,
    postgresBytes: await postgresMemory(shop),
    databaseBytes: sizes[0]!.bytes,
    largest,
  };
}

async function postgresMemory({ dataDir }: Shop): Promise<number> {
  const lines = await readFile(join(dataDir, "postgres/postmaster.pid"), "utf8");
  const postmaster = Number(lines.split("\n")[0]);
  const pids = [postmaster, ...(await childrenOf(postmaster))];
  const shares = await Promise.all(
    // A backend may end during the measurement.
    pids.map((pid) =>
      memoryOf(pid).then(
        ({ shareBytes }) => shareBytes,
        () => 0,
      ),
    ),
  );
  return shares.reduce((sum, bytes) => sum + bytes, 0);
}
