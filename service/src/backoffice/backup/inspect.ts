import { open } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import type { Config } from "../../core/config/config.ts";
import { decodeKeys, type StoredSecrets } from "../../core/config/secrets.ts";
import { firstOf, required } from "../../core/required.ts";
import { fingerprintOf, type MasterKey } from "../../core/vault.ts";
import { type AppliedMigration, listMigrations } from "../../platform/db/migrate.ts";
import { type ArchiveContents, discard, InvalidArchive, type OnRead, readArchive } from "./archive.ts";
import { type Manifest, mustHaveValidHmac, verifyManifest } from "./manifest.ts";
import { unwrapKeys } from "./wrapped-keys.ts";

export interface InspectedArchive {
  contents: ArchiveContents;
  manifest: Manifest;
  /** The archive's keys when this installation has others; null: the same keys. */
  secrets: StoredSecrets | null;
}

/** Reads the whole archive. Throws unless it is complete, unaltered and made for this installation. */
export async function inspectArchive(
  path: string,
  config: Config,
  passphrase: string | null,
  onRead?: OnRead,
): Promise<InspectedArchive> {
  const { contents, manifest } = await readWholeArchive(path, onRead);
  mustMatchEnvironment(manifest, config);
  mustMatchMigrations(manifest.migrations, await listMigrations());
  const secrets = await findSecrets(contents, manifest, config, passphrase);
  const ring = secrets ? decodeKeys(secrets.masterKeys) : config.masterKeys;
  return withArchiveErrors(path, async () => {
    mustHaveValidHmac(findKey(firstOf(manifest.masterKeys), ring), contents);
    return { contents, manifest, secrets };
  });
}

export async function readArchiveKeys(path: string, passphrase: string | null): Promise<StoredSecrets> {
  const { contents } = await readWholeArchive(path);
  if (contents.keys === null)
    throw new Error(`${path} contains no keys: STOA_BACKUP_PASSPHRASE was not set when it was written.`);
  if (passphrase === null)
    throw new Error("Set STOA_BACKUP_PASSPHRASE to what it was when the archive was made.");
  return unwrapKeys(contents.keys, passphrase);
}

async function readWholeArchive(
  path: string,
  onRead?: OnRead,
): Promise<{ contents: ArchiveContents; manifest: Manifest }> {
  await (await open(path)).close();
  return withArchiveErrors(path, async () => {
    const contents = await readArchive(path, { part: discard, file: discard }, onRead);
    return { contents, manifest: verifyManifest(contents) };
  });
}

/** Every error while reading the archive is a problem of the archive. */
async function withArchiveErrors<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { message } = error as Error;
    const why = error instanceof InvalidArchive ? message : `it was cut or altered (${message})`;
    throw new Error(`${path} cannot be restored: ${why}. Nothing was changed.`, { cause: error });
  }
}

function mustMatchEnvironment({ environment }: Manifest, config: Config): void {
  if (environment !== config.environment)
    throw new Error(
      `The archive is of a ${environment} shop; STOA_ENVIRONMENT says ${config.environment}. Set it to ${environment}, for good.`,
    );
}

/** The archive must come from the same migrations. A newer version migrates the restored database. */
function mustMatchMigrations(archived: AppliedMigration[], ours: AppliedMigration[]): void {
  if (isDeepStrictEqual(archived, ours)) return;
  const apart = (those: AppliedMigration[], others: AppliedMigration[]) =>
    those.filter((one) => !others.some((other) => isDeepStrictEqual(one, other)));
  const named = (those: AppliedMigration[]) =>
    those.map(({ name, checksum }) => `${name} (${checksum.slice(0, 8)})`).join(", ") || "nothing else";
  throw new Error(
    `The archive was made by another version of Stoa: it has ${named(apart(archived, ours))}, and this version has ${named(apart(ours, archived))}. Restore it with the version that wrote it; a newer version then migrates it.`,
  );
}

const findMissingKeys = (ring: MasterKey[], { masterKeys }: Manifest) =>
  masterKeys.filter((fingerprint) => !ring.some((key) => fingerprintOf(key) === fingerprint));

const findKey = (fingerprint: string, ring: MasterKey[]) =>
  required(
    ring.find((key) => fingerprintOf(key) === fingerprint),
    "the master key of the backup",
  );

async function findSecrets(
  { keys }: ArchiveContents,
  manifest: Manifest,
  { masterKeys, secretsDir }: Config,
  passphrase: string | null,
): Promise<StoredSecrets | null> {
  const missing = findMissingKeys(masterKeys, manifest);
  if (missing.length === 0) return null;
  const lack = `The archive's secrets are sealed by the master keys ${missing.join(", ")}, which this installation lacks`;
  if (keys === null)
    throw new Error(
      `${lack}, and it contains no keys itself. Set STOA_MASTER_KEYS to the keys it was written with, or put that installation's secrets.json into the data folder.`,
    );
  if (passphrase === null)
    throw new Error(`${lack}. Set STOA_BACKUP_PASSPHRASE to what it was when the archive was made.`);
  const secrets = await unwrapKeys(keys, passphrase);
  if (secretsDir === null)
    throw new Error(
      `${lack}. Set STOA_MASTER_KEYS and STOA_SESSION_KEYS to what \`stoa-server restore --keys\` prints of it.`,
    );
  if (findMissingKeys(decodeKeys(secrets.masterKeys), manifest).length > 0)
    throw new Error("The archive's own keys are not those that it was made with.");
  return secrets;
}
