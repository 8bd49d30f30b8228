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
  db
    .selectFrom("webhook_recoveries")
    .select([
      "id",
      "endpoint_id as endpointId",
      "since",
      "until",
      "recovered",
      "last_delivery_id as lastDeliveryId",
    ])
    .select(["created_at as createdAt", "ended_at as endedAt"])
    .where("id", "=", id);

/** `endpointId` null: of any endpoint. */
export function findRecovery(
  db: Queries,
  endpointId: string | null,
  id: string,
): Promise<RecoveryRow | undefined> {
  const found = recoveries(db, id);
  return (endpointId ? found.where("endpoint_id", "=", endpointId) : found).executeTakeFirst();
}

export const lockRecovery = (tx: Tx, id: string): Promise<RecoveryRow | undefined> =>
  recoveries(tx, id).forUpdate().executeTakeFirst();

export const insertRecovery = (
  tx: Tx,
  recovery: { id: string; endpoint_id: string; since: Date; until: Date; created_at: Date },
) => tx.insertInto("webhook_recoveries").values(recovery).execute();

export const updateRecovery = (
  tx: Tx,
  id: string,
  progress: { recovered: number; last_delivery_id: string | null; ended_at?: Date },
) => tx.updateTable("webhook_recoveries").set(progress).where("id", "=", id).execute();

/** Empty once the endpoint is disabled or its owner banned. */
function recoverableDeliveries(db: Queries, { endpointId, since, until, lastDeliveryId }: RecoveryRow) {
  const found = db
    .selectFrom("webhook_deliveries as d")
    .innerJoin("events as e", "e.id", "d.event_id")
    .innerJoin("webhook_endpoints as p", "p.id", "d.endpoint_id")
    .innerJoin("users as u", "u.id", "p.user_id")
    .where("d.endpoint_id", "=", endpointId)
    .where("u.banned_at", "is", null)
    .where("p.disabled_by", "is", null)
    .where("p.deleted_at", "is", null)
    .where("d.status", "in", ["failed", "skipped"])
    // A manual retry is under way.
    .where("d.due_at", "is", null)
    .where("e.created_at", ">=", since)
    .where("e.created_at", "<=", until);
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
      .updateTable("webhook_deliveries")
      .set({ status: "pending", scheduled_attempts: 0, due_at: now, ended_at: null })
      .where("id", "in", ids)
      .execute();
  return ids;
}
