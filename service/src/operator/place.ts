import { type Config, readConfig } from "../config.ts";
import type { Connection } from "../db/database.ts";
import { type EmbeddedDatabase, startEmbedded } from "../db/embedded.ts";

/** The database that the settings name: an outside one, or the embedded one of the data folder. */
export interface Place extends Connection {
  config: Config;
  embedded: EmbeddedDatabase | null;
  leave(): Promise<void>;
}

/** Of a place, what connections need. */
export const connectionOf = ({ target, direct, maxConnections }: Place): Connection => ({
  target,
  direct,
  ...(maxConnections !== undefined && { maxConnections }),
});

export async function openPlace(): Promise<Place> {
  const config = readConfig();
  const { databaseUrl, databaseDirectUrl, databaseConnections: maxConnections } = config;
  if (databaseUrl) {
    const direct = databaseDirectUrl ?? undefined;
    return { config, target: databaseUrl, direct, maxConnections, embedded: null, leave: async () => {} };
  }
  const embedded = await startEmbedded(config.dataDir);
  return { config, target: embedded.connection, maxConnections, embedded, leave: () => embedded.stop() };
}
