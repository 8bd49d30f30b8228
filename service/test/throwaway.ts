import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedDatabase, startEmbedded } from "../src/db/embedded.ts";

/** A PostgreSQL in a folder that goes away with it: fast, because it may forget everything. */
export async function startThrowaway(): Promise<EmbeddedDatabase> {
  const folder = await mkdtemp(join(tmpdir(), "stoa-throwaway-"));
  const server = await startEmbedded(folder, {
    settings: { fsync: "off", synchronous_commit: "off", full_page_writes: "off", max_connections: "200" },
  });
  return {
    ...server,
    stop: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** A libpq URL of a database on that server, its socket named as the host. */
export function urlOf(server: EmbeddedDatabase, database: string): string {
  const { host, port, user } = server.connection;
  return `postgres://${user}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}
