import type { Config, Environment } from "../../core/config/config.ts";
import { findReplacedSecrets } from "../../core/config/secrets.ts";
import { firstOf } from "../../core/required.ts";
import { fingerprintOf } from "../../core/vault.ts";
import type { Database } from "./database.ts";

/** The database belongs to another environment or another keyring. */
export class WrongInstallation extends Error {
  override name = "WrongInstallation";
}

export interface InstallationIdentity {
  environment: Environment;
  masterKeyFingerprints: string[];
  /** null: the master keys come from settings. */
  secretsDir: string | null;
}

export const installationOf = ({ environment, masterKeys, secretsDir }: Config): InstallationIdentity => ({
  environment,
  masterKeyFingerprints: masterKeys.map(fingerprintOf),
  secretsDir,
});

/** Stores environment and key at the first start. Throws WrongInstallation when a later process differs. */
export async function claimInstallation(db: Database, claim: InstallationIdentity, now: Date): Promise<void> {
  const primary = firstOf(claim.masterKeyFingerprints);
  await db
    .insertInto("installation")
    .values({ environment: claim.environment, masterKeyFingerprint: primary, createdAt: now })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await mustBelongTo(db, claim);
}

/** For a new primary key, after all sealed values are under it. */
export const updateInstallationKey = (db: Database, masterKeyFingerprint: string) =>
  db.updateTable("installation").set({ masterKeyFingerprint }).execute();

export async function mustBelongTo(db: Database, claim: InstallationIdentity): Promise<void> {
  const stored = await db.selectFrom("installation").selectAll().executeTakeFirst();
  if (!stored) throw new WrongInstallation("This database has no shop yet: the first start creates one.");
  if (stored.environment !== claim.environment) {
    throw new WrongInstallation(
      `This database is a ${stored.environment} database; STOA_ENVIRONMENT says ${claim.environment}. Use another database for it.`,
    );
  }
  if (!claim.masterKeyFingerprints.includes(stored.masterKeyFingerprint)) {
    throw new WrongInstallation(describeLostKey(claim.secretsDir, stored.masterKeyFingerprint));
  }
}

function describeLostKey(secretsDir: string | null, masterKeyFingerprint: string): string {
  const found = secretsDir === null ? null : findReplacedSecrets(secretsDir, masterKeyFingerprint);
  return found
    ? `A restore was killed after it had replaced the keys, and before its data was there. Put the keys of this database back, then start again: cp "${found.kept}" "${found.current}"`
    : "STOA_MASTER_KEYS lacks the key that this database was made with; stored secrets could not be opened.";
}
