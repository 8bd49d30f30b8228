import type { Config, Environment } from "../../core/config/config.ts";
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
}

export const installationOf = ({ environment, masterKeys }: Config): InstallationIdentity => ({
  environment,
  masterKeyFingerprints: masterKeys.map(fingerprintOf),
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
    throw new WrongInstallation(
      "STOA_MASTER_KEYS lacks the key that this database was made with; stored secrets could not be opened.",
    );
  }
}
