import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { MasterKey } from "../vault.ts";
import type { Environment } from "./config.ts";
import type { SettingsReader } from "./settings-reader.ts";

interface Secrets {
  masterKeys: MasterKey[];
  sessionKeys: MasterKey[];
  /** The data folder that the master keys come from; null: the settings. */
  secretsDir: string | null;
}

/** The format of the file. */
export interface StoredSecrets {
  masterKeys: { id: string; key: string }[];
  sessionKeys: { id: string; key: string }[];
}

const OWNER_ONLY = { mode: 0o600, flush: true } as const;
const fileIn = (dataDir: string) => join(dataDir, "secrets.json");
const textOf = (secrets: StoredSecrets) => `${JSON.stringify(secrets, null, 2)}\n`;

/** The secrets of a data folder: made at the first start, readable by their owner alone. */
function loadOrCreateSecrets(dataDir: string) {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const made = {
    masterKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
    sessionKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
  };
  try {
    writeFileSync(fileIn(dataDir), textOf(made), { ...OWNER_ONLY, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const kept = JSON.parse(readFileSync(fileIn(dataDir), "utf8")) as StoredSecrets;
  return { masterKeys: decodeKeys(kept.masterKeys), sessionKeys: decodeKeys(kept.sessionKeys) };
}

export const decodeKeys = (keys: { id: string; key: string }[]): MasterKey[] =>
  keys.map(({ id, key }) => ({ id, bytes: Buffer.from(key, "base64") }));

/** Replaces the secrets and keeps the old ones beside them, because other data may be sealed with them. */
export function replaceSecrets(dataDir: string, secrets: StoredSecrets): void {
  const file = fileIn(dataDir);
  const digest = createHash("sha256").update(readFileSync(file)).digest("hex");
  copyFileSync(file, join(dataDir, `secrets.${digest.slice(0, 16)}.json`));
  writeFileSync(`${file}.new`, textOf(secrets), OWNER_ONLY);
  renameSync(`${file}.new`, file);
}

/** Keys come from settings. The data folder's own keys replace them only with the embedded database. */
export function readSecrets(
  read: SettingsReader,
  config: { environment: Environment; databaseUrl: string | null; dataDir: string },
): Secrets {
  const given = {
    masterKeys: read.keys("STOA_MASTER_KEYS"),
    sessionKeys: read.keys("STOA_SESSION_KEYS"),
    secretsDir: null,
  };
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
  const kept = loadOrCreateSecrets(config.dataDir);
  const areKept = given.masterKeys.length === 0;
  return {
    masterKeys: areKept ? kept.masterKeys : given.masterKeys,
    sessionKeys: given.sessionKeys.length > 0 ? given.sessionKeys : kept.sessionKeys,
    secretsDir: areKept ? config.dataDir : null,
  };
}
