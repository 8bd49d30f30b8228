import type { Environment } from "../config.ts";
import type { Database } from "./database.ts";

/** The database belongs to another environment or another keyring than this process. */
export class WrongInstallation extends Error {
  override name = "WrongInstallation";
}

/** Writes at the first start what the database belongs to, and refuses any process of another kind after it. */
export async function claimInstallation(
  db: Database,
  claimant: { environment: Environment; masterKeyFingerprints: string[]; now: Date },
): Promise<void> {
  const [primary] = claimant.masterKeyFingerprints;
  await db
    .insertInto("installation")
    .values({ environment: claimant.environment, master_key_fingerprint: primary!, created_at: claimant.now })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const kept = await db.selectFrom("installation").selectAll().executeTakeFirstOrThrow();
  if (kept.environment !== claimant.environment) {
    throw new WrongInstallation(
      `This database is a ${kept.environment} database; STOA_ENVIRONMENT says ${claimant.environment}. Use another database for it.`,
    );
  }
  if (!claimant.masterKeyFingerprints.includes(kept.master_key_fingerprint)) {
    throw new WrongInstallation(
      "STOA_MASTER_KEYS lacks the key that this database was made with; stored secrets could not be opened.",
    );
  }
}
