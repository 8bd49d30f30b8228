import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Reader } from "./config.reader.ts";
import type { Environment } from "./config.ts";
import type { MasterKey } from "./vault.ts";

interface Secrets {
  masterKeys: MasterKey[];
  sessionKeys: MasterKey[];
}

/** The secrets of a data folder: made at the first start, readable by their owner alone. */
function secretsOf(dataDir: string): Secrets {
  const file = join(dataDir, "secrets.json");
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const made = {
    masterKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
    sessionKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
  };
  try {
    writeFileSync(file, `${JSON.stringify(made, null, 2)}\n`, { flag: "wx", mode: 0o600, flush: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const kept = JSON.parse(readFileSync(file, "utf8")) as typeof made;
  const decode = (keys: { id: string; key: string }[]) =>
    keys.map(({ id, key }) => ({ id, bytes: Buffer.from(key, "base64") }));
  return { masterKeys: decode(kept.masterKeys), sessionKeys: decode(kept.sessionKeys) };
}

/** Keys come from settings; the data folder's own stand in for them, but only beside its own database. */
export function secretsFor(
  read: Reader,
  config: { environment: Environment; databaseUrl: string | null; dataDir: string },
) {
  const given = { masterKeys: read.keys("STOA_MASTER_KEYS"), sessionKeys: read.keys("STOA_SESSION_KEYS") };
  const mustBeGiven =
    config.environment === "production"
      ? "in production"
      : config.databaseUrl
        ? "beside DATABASE_URL, because every node needs the same"
        : null;
  if (mustBeGiven) {
    if (given.masterKeys.length === 0) read.problems.push(`STOA_MASTER_KEYS must be set ${mustBeGiven}`);
    if (given.sessionKeys.length === 0) read.problems.push(`STOA_SESSION_KEYS must be set ${mustBeGiven}`);
    return given;
  }
  if (read.problems.length > 0) return given;
  const kept = secretsOf(config.dataDir);
  return {
    masterKeys: given.masterKeys.length > 0 ? given.masterKeys : kept.masterKeys,
    sessionKeys: given.sessionKeys.length > 0 ? given.sessionKeys : kept.sessionKeys,
  };
}
