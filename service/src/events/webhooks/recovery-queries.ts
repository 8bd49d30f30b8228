import type { Queries, Tx } from "../../platform/db/database.ts";

export interface RecoveryRow {
  id: string;
  endpointId: string;
  since: Date;
  until: Date;
  recovered: number;
  lastDeliveryId: string | null;
  createdAt: Date;
  endedAt: Date | null;
}

const recoveries = (db: Queries, id: string) =>
  db.selectFrom("webhookRecoveries").selectAll().where("id", "=", id);

/** `endpointId` null: of any endpoint. */
export function findRecovery(
  db: Queries,
  endpointId: string | null,
  id: string,
): Promise<RecoveryRow | undefined> {
  const found = recoveries(db, id);
  return (endpointId ? found.where("endpointId", "=", endpointId) : found).executeTakeFirst();
}

export const lockRecovery = (tx: Tx, id: string): Promise<RecoveryRow | undefined> =>
  recoveries(tx, id).forUpdate().executeTakeFirst();

export const insertRecovery = (
  tx: Tx,
  recovery: { id: string; endpointId: string; since: Date; until: Date; createdAt: Date },
) => tx.insertInto("webhookRecoveries").values(recovery).execute();

export const updateRecovery = (
  tx: Tx,
  id: string,
  progress: { recovered: number; lastDeliveryId: string | null; endedAt?: Date },
) => tx.updateTable("webhookRecoveries").set(progress).where("id", "=", id).execute();

/** Empty once the endpoint is disabled or its owner banned. */
function recoverableDeliveries(db: Queries, { endpointId, since, until, lastDeliveryId }: RecoveryRow) {
  const found = db
    .selectFrom("webhookDeliveries as d")
    .innerJoin("events as e", "e.id", "d.eventId")
    .innerJoin("webhookEndpoints as p", "p.id", "d.endpointId")
    .innerJoin("users as u", "u.id", "p.userId")
    .where("d.endpointId", "=", endpointId)
    .where("u.bannedAt", "is", null)
    .where("p.disabledBy", "is", null)
    .where("p.deletedAt", "is", null)
    .where("d.status", "in", ["failed", "skipped"])
    // A manual retry is under way.
    .where("d.dueAt", "is", null)
    .where("e.createdAt", ">=", since)
    .where("e.createdAt", "<=", until);
  return lastDeliveryId ? found.where("d.id", ">", lastDeliveryId) : found;
}

export async function countRecoverableDeliveries(db: Queries, recovery: RecoveryRow): Promise<number> {
  const { total } = await recoverableDeliveries(db, recovery)
    .select((row) => row.fn.countAll<number>().as("total"))
    .executeTakeFirstOrThrow();
  return total;
}

/** Restarts their schedule. The caller holds the lock of the queue. */
export async function recoverDeliveries(
  tx: Tx,
  recovery: RecoveryRow,
  limit: number,
  now: Date,
): Promise<string[]> {
  const some = await recoverableDeliveries(tx, recovery)
    .select("d.id")
    .orderBy("d.id")
    .limit(limit)
    .execute();
  const ids = some.map(({ id }) => id);
  if (ids.length > 0)
    await tx
      .updateTable("webhookDeliveries")
      .set({ status: "pending", scheduledAttempts: 0, dueAt: now, endedAt: null })
      .where("id", "in", ids)
      .execute();
  return ids;
}
