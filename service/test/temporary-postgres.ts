import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedDatabase, startEmbedded } from "../src/platform/db/embedded.ts";

/** Linux's file system in memory, and the free space required there. */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 4 * 2 ** 30;

const nonDurableSettings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_wal_size: "256MB",
  max_connections: "200",
  // Each new session maps what it reads of them, and creating or dropping a database scans all of them. With the 1 GB of a
  // large machine, a test file takes up to a fifth more of PostgreSQL's CPU time.
  shared_buffers: "128MB",
};

/** A PostgreSQL in a temporary folder, without durability. */
export async function startTemporaryPostgres(): Promise<EmbeddedDatabase> {
  const folder = await mkdtemp(join(await findFastFolder(), "stoa-throwaway-"));
  const server = await startEmbedded(folder, { settings: nonDurableSettings });
  return {
    ...server,
    stop: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Each database is a thousand files, created and deleted with its test file. On a disk, this is a tenth of the whole run. */
async function findFastFolder(): Promise<string> {
  const memory = await statfs(MEMORY).catch(() => null);
  return memory && memory.bavail * memory.bsize >= MEMORY_BYTES ? MEMORY : tmpdir();
}

/** A libpq URL with the socket's folder as host. */
export function urlOf(server: EmbeddedDatabase, database: string): string {
  const { host, port, user } = server.connection;
  return `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}
