import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

export const findAuthenticator = (db: Queries, userId: string) =>
  db
    .selectFrom("authenticators")
    .select(["confirmed_at as confirmedAt", "locked_until as lockedUntil"])
    .where("user_id", "=", userId)
    .executeTakeFirst();

/** Replaces the secret of an unconfirmed app. Returns false when an app is confirmed already. */
export async function upsertPendingAuthenticator(
  db: Queries,
  authenticator: { user_id: string; sealed_secret: string; created_at: Date },
): Promise<boolean> {
  const row = await db
    .insertInto("authenticators")
    .values(authenticator)
    .onConflict((conflict) =>
      conflict
        .column("user_id")
        .doUpdateSet({ ...authenticator, last_step: 0, tries: 0, locked_until: null })
        .where("authenticators.confirmed_at", "is", null),
    )
    .returning("user_id")
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
      locked_until: sql<Date | null>`
        case when locked_until is null and tries + 1 >= ${limit.tries} then ${limit.lockedUntil}::timestamptz end`,
    })
    .where("user_id", "=", userId)
    .where("confirmed_at", stage === "confirmed" ? "is not" : "is", null)
    .where((row) => row.or([row("locked_until", "is", null), row("locked_until", "<=", limit.now)]))
    .returning(["sealed_secret as sealedSecret", "tries"])
    .executeTakeFirst();

const NO_TRIES = { tries: 0, locked_until: null };

/** A time step works once: of parallel calls, one wins. */
export async function acceptTimeStep(db: Queries, userId: string, step: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("authenticators")
    .set({ last_step: step, ...NO_TRIES })
    .where("user_id", "=", userId)
    .where("last_step", "<", step)
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
    .set({ confirmed_at: verified.now, last_step: verified.step, ...NO_TRIES })
    .where("user_id", "=", userId)
    .where("sealed_secret", "=", verified.sealedSecret)
    .where("confirmed_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export const resetTries = (db: Queries, userId: string) =>
  db.updateTable("authenticators").set(NO_TRIES).where("user_id", "=", userId).execute();

export async function deleteConfirmedAuthenticator(db: Queries, userId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom("authenticators")
    .where("user_id", "=", userId)
    .where("confirmed_at", "is not", null)
    .executeTakeFirst();
  return numDeletedRows === 1n;
}

/** Confirmed or not, with its backup codes. */
export const deleteAuthenticator = (db: Queries, userId: string) =>
  db.deleteFrom("authenticators").where("user_id", "=", userId).execute();

export async function replaceBackupCodes(db: Queries, userId: string, digests: Buffer[]): Promise<void> {
  await db.deleteFrom("backup_codes").where("user_id", "=", userId).execute();
  await db
    .insertInto("backup_codes")
    .values(digests.map((digest) => ({ user_id: userId, digest })))
    .execute();
}

/** Of parallel calls, one wins. */
export async function consumeBackupCode(
  db: Queries,
  userId: string,
  digest: Buffer,
  now: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable("backup_codes")
    .set({ used_at: now })
    .where("user_id", "=", userId)
    .where("digest", "=", digest)
    .where("used_at", "is", null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

export async function countBackupCodes(db: Queries, userId: string): Promise<number> {
  const { left } = await db
    .selectFrom("backup_codes")
    .select((row) => row.fn.countAll<number>().as("left"))
    .where("user_id", "=", userId)
    .where("used_at", "is", null)
    .executeTakeFirstOrThrow();
  return left;
}
