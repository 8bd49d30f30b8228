import type { Queries, Tx } from "../../platform/db/database.ts";

export interface NewSecret {
  id: string;
  endpointId: string;
  sealedSecret: string;
  activatesAt: Date;
}

export const insertSecret = (tx: Tx, secret: NewSecret) =>
  tx.insertInto("webhookSecrets").values(secret).execute();

/**
 * Prepares a secret that signs from a time on. Deletes expired secrets and those that would start then or later.
 * The newest remaining one gets its end from the new secret. The caller holds the lock of the queue.
 */
export async function deleteSupersededSecrets(
  tx: Tx,
  endpointId: string,
  from: Date,
  now: Date,
): Promise<void> {
  await tx
    .deleteFrom("webhookSecrets")
    .where("endpointId", "=", endpointId)
    .where((row) =>
      row.or([
        row("expiresAt", "<=", now),
        row.and([row("activatesAt", ">", now), row("activatesAt", ">=", from)]),
      ]),
    )
    .execute();
  const newest = tx
    .selectFrom("webhookSecrets")
    .select("id")
    .where("endpointId", "=", endpointId)
    .orderBy("activatesAt", "desc")
    .orderBy("id", "desc")
    .limit(1);
  await tx.updateTable("webhookSecrets").set({ expiresAt: null }).where("id", "=", newest).execute();
}

/** Active now or later. */
export async function countSecrets(tx: Tx, endpointId: string, at: Date): Promise<number> {
  const { total } = await tx
    .selectFrom("webhookSecrets")
    .select((row) => row.fn.countAll<number>().as("total"))
    .where("endpointId", "=", endpointId)
    .where((row) => row.or([row("expiresAt", "is", null), row("expiresAt", ">", at)]))
    .executeTakeFirstOrThrow();
  return total;
}

/** Active and future secrets end at this time at the latest. */
export const expireSecrets = (tx: Tx, endpointId: string, at: Date) =>
  tx
    .updateTable("webhookSecrets")
    .set({ expiresAt: at })
    .where("endpointId", "=", endpointId)
    .where((row) => row.or([row("expiresAt", "is", null), row("expiresAt", ">", at)]))
    .execute();

export const deleteSecrets = (tx: Tx, endpointId: string) =>
  tx.deleteFrom("webhookSecrets").where("endpointId", "=", endpointId).execute();

/** Newest first. */
export const listSigningSecrets = (db: Queries, endpointId: string, at: Date) =>
  db
    .selectFrom("webhookSecrets")
    .select(["activatesAt", "expiresAt"])
    .where("endpointId", "=", endpointId)
    .where("activatesAt", "<=", at)
    .where((row) => row.or([row("expiresAt", "is", null), row("expiresAt", ">", at)]))
    .orderBy("activatesAt", "desc")
    .orderBy("id", "desc")
    .execute();
