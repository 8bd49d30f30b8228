import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

export const findAuthenticator = (db: Queries, userId: string) =>
  db
    .selectFrom("authenticators")
    .select(["confirmedAt", "lockedUntil"])
    .where("userId", "=", userId)
    .executeTakeFirst();

/** Replaces the secret of an unconfirmed app. Returns false when an app is confirmed already. */
export async function upsertPendingAuthenticator(
  db: Queries,
  authenticator: { userId: string; sealedSecret: string; createdAt: Date },
): Promise<boolean> {
  const row = await db
    .insertInto("authenticators")
    .values(authenticator)
    .onConflict((conflict) =>
      conflict
        .column("userId")
        .doUpdateSet({ ...authenticator, lastStep: 0, tries: 0, lockedUntil: null })
        .where("authenticators.confirmedAt", "is", null),
    )
    .returning("userId")
    .executeTakeFirst();
  return row !== undefined;
}

export type AuthenticatorState = "confirmed" | "pending";

export interface CountedTry {
  sealedSecret: string;
  tries: number;
}

/** Counts a try and locks at the limit. undefined: locked, or no app. */
export const incrementTries = (
  db: Queries,
  userId: string,
  stage: AuthenticatorState,
  limit: { now: Date; tries: number; lockedUntil: Date },
): Promise<CountedTry | undefined> =>
  db
    .updateTable("authenticators")
    .set({
      // After a lock has expired, the count restarts.
      tries: sql<number>`case when locked_until is null then tries + 1 else 1 end`,
      lockedUntil: sql<Date | null>`
        case when locked_until is null and tries + 1 >= ${limit.tries} then ${limit.lockedUntil}::timestamptz end`,
    })
    .where("userId", "=", userId)
    .where("confirmedAt", stage === "confirmed" ? "is not" : "is", null)
    .where((row) => row.or([row("lockedUntil", "is", null), row("lockedUntil", "<=", limit.now)]))
    .returning(["sealedSecret", "tries"])
    .executeTakeFirst();

const NO_TRIES = { tries: 0, lockedUntil: null };

/** A time step works once: of parallel calls, one wins. */
export async function acceptTimeStep(db: Queries, userId: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("authenticators")
    .set({ lastStep: step, ...NO_TRIES })
    .where("userId", "=", userId)
    .where("lastStep", "<", step)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Only when the app whose code was verified was not replaced meanwhile. */
export async function confirmAuthenticator(
  db: Queries,
  userId: string,
  verified: { sealedSecret: string; step: number; now: Date },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("authenticators")
    .set({ confirmedAt: verified.now, lastStep: verified.step, ...NO_TRIES })
    .where("userId", "=", userId)
    .where("sealedSecret", "=", verified.sealedSecret)
    .where("confirmedAt", "is", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export const resetTries = (db: Queries, userId: string) =>
  db.updateTable("authenticators").set(NO_TRIES).where("userId", "=", userId).execute();

export async function deleteConfirmedAuthenticator(db: Queries, userId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("authenticators")
    .where("userId", "=", userId)
    .where("confirmedAt", "is not", null)
    .executeTakeFirst();
  return numDeletedRows === 1n;
}

/** Confirmed or not, with its backup codes. */
export const deleteAuthenticator = (db: Queries, userId: string) =>
  db.deleteFrom("authenticators").where("userId", "=", userId).execute();

/** Each change of backup codes begins with it. The removal of the app locks in this order, too: the other order could deadlock. */
const lockAuthenticator = (tx: Queries, userId: string) =>
  sql`select from authenticators where user_id = ${userId} for no key update`.execute(tx);

export async function replaceBackupCodes(tx: Queries, userId: string, digests: Buffer[]): Promise<void> {
  await lockAuthenticator(tx, userId);
  await tx.deleteFrom("backupCodes").where("userId", "=", userId).execute();
  await tx
    .insertInto("backupCodes")
    .values(digests.map((digest) => ({ userId, digest })))
    .execute();
}

/** Of parallel calls, one wins. */
export async function consumeBackupCode(
  tx: Queries,
  userId: string,
  digest: Buffer,
  now: Date,
): Promise<boolean> {
  await lockAuthenticator(tx, userId);
  const { numUpdatedRows } = await tx
    .updateTable("backupCodes")
    .set({ usedAt: now })
    .where("userId", "=", userId)
    .where("digest", "=", digest)
    .where("usedAt", "is", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export async function countBackupCodes(db: Queries, userId: string): Promise<number> {
  const { left } = await db
    .selectFrom("backupCodes")
    .select((row) => row.fn.countAll<number>().as("left"))
    .where("userId", "=", userId)
    .where("usedAt", "is", null)
    .executeTakeFirstOrThrow();
  return left;
}
