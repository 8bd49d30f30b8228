import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fingerprintOf, type MasterKey } from "../vault.ts";
import type { Environment } from "./config.ts";
import type { SettingsReader } from "./settings-reader.ts";

interface Secrets {
  masterKeys: MasterKey[];
  sessionKeys: MasterKey[];
  /** null: the master keys come from settings. */
  secretsDir: string | null;
}

export interface StoredSecrets {
  masterKeys: { id: string; key: string }[];
  sessionKeys: { id: string; key: string }[];
}

const OWNER_ONLY = { mode: 0o600, flush: true } as const;
const fileIn = (dataDir: string) => join(dataDir, "secrets.json");
const KEPT_FILE = /^secrets\.[0-9a-f]{16}\.json$/;
const textOf = (secrets: StoredSecrets) => `${JSON.stringify(secrets, null, 2)}\n`;

/** Created at the first start, readable by their owner only. */
function loadOrCreateSecrets(dataDir: string) {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const created = {
    masterKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
    sessionKeys: [{ id: "1", key: randomBytes(32).toString("base64") }],
  };
  try {
    writeFileSync(fileIn(dataDir), textOf(created), { ...OWNER_ONLY, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const stored = JSON.parse(readFileSync(fileIn(dataDir), "utf8")) as StoredSecrets;
  return { masterKeys: decodeKeys(stored.masterKeys), sessionKeys: decodeKeys(stored.sessionKeys) };
}

export const decodeKeys = (keys: { id: string; key: string }[]): MasterKey[] =>
  keys.map(({ id, key }) => ({ id, bytes: Buffer.from(key, "base64") }));

/** Copies the old secrets to another file, because other data may be sealed with them. Returns the old ones. */
export function replaceSecrets(dataDir: string, secrets: StoredSecrets): StoredSecrets {
  const file = fileIn(dataDir);
  const old = readFileSync(file, "utf8");
  const digest = createHash("sha256").update(old).digest("hex");
  copyFileSync(file, join(dataDir, `secrets.${digest.slice(0, 16)}.json`));
  writeFileSync(`${file}.new`, textOf(secrets), OWNER_ONLY);
  renameSync(`${file}.new`, file);
  return JSON.parse(old) as StoredSecrets;
}

/** The secrets that a restore replaced and that have this master key: the restore was killed before its end. */
export function findReplacedSecrets(
  dataDir: string,
  masterKeyFingerprint: string,
): { kept: string; current: string } | null {
  const hasKey = (name: string) => {
    const { masterKeys } = JSON.parse(readFileSync(join(dataDir, name), "utf8")) as StoredSecrets;
    return decodeKeys(masterKeys).some((key) => fingerprintOf(key) === masterKeyFingerprint);
  };
  const kept = readdirSync(dataDir)
    .filter((name) => KEPT_FILE.test(name))
    .find(hasKey);
  return kept === undefined ? null : { kept: join(dataDir, kept), current: fileIn(dataDir) };
}

/** Keys come from settings. The data folder's own keys replace them only with the embedded database. */
export function readSecrets(
  read: SettingsReader,
  config: { environment: Environment; databaseUrl: string | null; dataDir: string },
): Secrets {
  const fromSettings = {
    masterKeys: read.keys("STOA_MASTER_KEYS"),
    sessionKeys: read.keys("STOA_SESSION_KEYS"),
    secretsDir: null,
  };
  const requiredWhen =
    config.environment === "production"
      ? "in production"
      : config.databaseUrl
        ? "beside DATABASE_URL, because every node needs the same"
        : null;
  if (requiredWhen) {
    if (fromSettings.masterKeys.length === 0)
      read.problems.push(`STOA_MASTER_KEYS must be set ${requiredWhen}`);
    if (fromSettings.sessionKeys.length === 0)
      read.problems.push(`STOA_SESSION_KEYS must be set ${requiredWhen}`);
    return fromSettings;
  }
  if (read.problems.length > 0) return fromSettings;
  const stored = loadOrCreateSecrets(config.dataDir);
  const usesStored = fromSettings.masterKeys.length === 0;
  return {
    masterKeys: usesStored ? stored.masterKeys : fromSettings.masterKeys,
    sessionKeys: fromSettings.sessionKeys.length > 0 ? fromSettings.sessionKeys : stored.sessionKeys,
    secretsDir: usesStored ? config.dataDir : null,
  };
}
