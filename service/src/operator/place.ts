import { type Config, readConfig } from "../config.ts";
import type { Connection } from "../db/database.ts";
import { type EmbeddedDatabase, startEmbedded } from "../db/embedded.ts";

/** The database that the settings name: an outside one, or the embedded one of the data folder. */
export interface Place {
  config: Config;
  target: Connection["target"];
  embedded: EmbeddedDatabase | null;
  leave(): Promise<void>;
}

export async function openPlace(): Promise<Place> {
  const config = readConfig();
  if (config.databaseUrl) {
    return { config, target: config.databaseUrl, embedded: null, leave: async () => {} };
  }
  const embedded = await startEmbedded(config.dataDir);
  return { config, target: embedded.connection, embedded, leave: () => embedded.stop() };
}
