import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Config, readConfig, readDatabaseLocation } from "../../core/config/config.ts";
import { databaseHosts, errorMessageOf } from "../../core/config/database-hosts.ts";
import type { Connection } from "../../platform/db/database.ts";
import { type EmbeddedDatabase, type EmbeddedOptions, startEmbedded } from "../../platform/db/embedded.ts";

/** The configured database, or the embedded one of the data folder. */
export interface OperatorDatabase extends Connection {
  config: Config;
  embedded: EmbeddedDatabase | null;
  close(): Promise<void>;
}

export const toConnection = ({ target, direct, maxConnections }: OperatorDatabase): Connection => ({
  target,
  direct,
  ...(maxConnections !== undefined && { maxConnections }),
});

/** For commands on an existing database: a mistyped data folder must not create a new, empty one. */
export function readConfigOfExistingDatabase(): Config {
  const { dataDir, databaseUrl } = readDatabaseLocation();
  if (databaseUrl === null && !existsSync(join(dataDir, "postgres", "PG_VERSION")))
    throw new Error(
      `There is no database in ${dataDir}: set STOA_DATA_DIR to the data folder of the service, or DATABASE_URL to its database. Only start, migrate, restore and reset create one.`,
    );
  return readConfig();
}

export async function openOperatorDatabase(
  config: Config,
  options: Pick<EmbeddedOptions, "onWaiting"> = {},
): Promise<OperatorDatabase> {
  const { databaseUrl, databaseDirectUrl, databaseConnections: maxConnections } = config;
  if (databaseUrl) {
    const direct = databaseDirectUrl ?? undefined;
    return { config, target: databaseUrl, direct, maxConnections, embedded: null, close: async () => {} };
  }
  const embedded = await startEmbedded(config.dataDir, options);
  return { config, target: embedded.connection, maxConnections, embedded, close: () => embedded.stop() };
}

/** Throws an error that names the setting when one of the two connections fails. */
export async function mustConnectToDatabase({ config, target, direct }: OperatorDatabase): Promise<void> {
  if (config.databaseUrl) await mustConnect("DATABASE_URL", target);
  if (direct !== undefined) await mustConnect("DATABASE_DIRECT_URL", direct);
}

async function mustConnect(setting: string, target: Connection["target"]): Promise<void> {
  // Kysely, which it imports, has 250 files.
  const { createClient } = await import("../../platform/db/database.ts");
  const client = createClient({ target }, { application_name: "stoa" });
  client.on("error", () => {}); // the connect() in hand rejects
  try {
    await client.connect();
  } catch (error) {
    const where = typeof target === "string" ? databaseHosts(target) : target.host;
    throw new Error(
      `PostgreSQL does not answer at ${where} (${setting}): ${errorMessageOf(error)}.${hintFor(error)}`,
    );
  } finally {
    await client.end().catch(() => {});
  }
}

function hintFor(error: unknown): string {
  if (!/unsupported startup parameter/.test(errorMessageOf(error)))
    return " Is it running, and is the address right?";
  return " A connection pooler refuses what it does not know: in PgBouncer set ignore_startup_parameters = extra_float_digits,options.";
}
