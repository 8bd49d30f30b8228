import type { Queries, Tx } from "../../platform/db/database.ts";

export interface NewSecret {
  id: string;
  endpoint_id: string;
  sealed_secret: string;
  activates_at: Date;
}

export const insertSecret = (tx: Tx, secret: NewSecret) =>
  tx.insertInto("webhook_secrets").values(secret).execute();

/**
 * Makes room for a secret that signs from a time on. Deletes expired secrets and those that would start then or later.
 * The newest remaining one gets its end from the new secret. The caller holds the lock of the queue.
 */
export async function deleteSupersededSecrets(
  tx: Tx,
  endpointId: string,
  from: Date,
  now: Date,
): Promise<void> {
  await tx
    .deleteFrom("webhook_secrets")
    .where("endpoint_id", "=", endpointId)
    .where((row) =>
      row.or([
        row("expires_at", "<=", now),
        row.and([row("activates_at", ">", now), row("activates_at", ">=", from)]),
      ]),
    )
    .execute();
  const newest = tx
    .selectFrom("webhook_secrets")
    .select("id")
    .where("endpoint_id", "=", endpointId)
    .orderBy("activates_at", "desc")
    .orderBy("id", "desc")
    .limit(1);
  await tx.updateTable("webhook_secrets").set({ expires_at: null }).where("id", "=", newest).execute();
}

/** Active now or later. */
export async function countSecrets(tx: Tx, endpointId: string, at: Date): Promise<number> {
  const { total } = await tx
    .selectFrom("webhook_secrets")
    .select((row) => row.fn.countAll<number>().as("total"))
    .where("endpoint_id", "=", endpointId)
    .where((row) => row.or([row("expires_at", "is", null), row("expires_at", ">", at)]))
    .executeTakeFirstOrThrow();
  return total;
}

/** Active and future secrets end at this time at the latest. */
export const expireSecrets = (tx: Tx, endpointId: string, at: Date) =>
  tx
    .updateTable("webhook_secrets")
    .set({ expires_at: at })
    .where("endpoint_id", "=", endpointId)
    .where((row) => row.or([row("expires_at", "is", null), row("expires_at", ">", at)]))
    .execute();

export const deleteSecrets = (tx: Tx, endpointId: string) =>
  tx.deleteFrom("webhook_secrets").where("endpoint_id", "=", endpointId).execute();

/** Newest first. */
export const listSigningSecrets = (db: Queries, endpointId: string, at: Date) =>
  db
    .selectFrom("webhook_secrets")
    .select(["activates_at as activatesAt", "expires_at as expiresAt"])
    .where("endpoint_id", "=", endpointId)
    .where("activates_at", "<=", at)
    .where((row) => row.or([row("expires_at", "is", null), row("expires_at", ">", at)]))
    .orderBy("activates_at", "desc")
    .orderBy("id", "desc")
    .execute();
