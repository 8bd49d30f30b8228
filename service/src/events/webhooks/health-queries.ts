import type { Queries, Tx } from "../../platform/db/database.ts";

export interface FailingEndpoint {
  id: string;
  userId: string;
  url: string;
  failingSince: Date;
  failedDeliveries: number;
  emailedDay: number;
}

const enabledEndpoints = (db: Queries) =>
  db.selectFrom("webhook_endpoints").where("deleted_at", "is", null).where("disabled_by", "is", null);

/** Endpoints without a success since a moment. */
export const listFailingEndpoints = (db: Queries, since: Date) =>
  enabledEndpoints(db).select("id").where("failing_since", "<=", since).orderBy("id").execute();

/** Endpoints that take deliveries again, but gave some up of which nobody was told for a day. */
export const listEndpointsWithExhaustedDeliveries = (db: Queries, toldBefore: Date) =>
  endpointsWithExhaustedDeliveries(db, toldBefore).select("id").orderBy("id").execute();

const endpointsWithExhaustedDeliveries = (db: Queries, toldBefore: Date) =>
  enabledEndpoints(db)
    .where("given_up", ">", 0)
    // While it takes nothing its owner hears of that.
    .where("failing_since", "is", null)
    .where((row) => row.or([row("given_up_told_at", "is", null), row("given_up_told_at", "<=", toldBefore)]));

/** Counts from zero again; returns what was counted. The lane is locked. */
export async function resetExhaustedCount(tx: Tx, id: string, toldBefore: Date, now: Date) {
  const row = await endpointsWithExhaustedDeliveries(tx, toldBefore)
    .select(["user_id as userId", "url", "given_up as count"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row)
    await tx
      .updateTable("webhook_endpoints")
      .set({ given_up: 0, given_up_told_at: now })
      .where("id", "=", id)
      .execute();
  return row;
}

/** As it stands now that its lane is locked; undefined where it took something meanwhile. */
export const findFailingEndpoint = (tx: Tx, id: string): Promise<FailingEndpoint | undefined> =>
  enabledEndpoints(tx)
    .select(["id", "user_id as userId", "url", "failing_since as failingSince"])
    .select(["failed_deliveries as failedDeliveries", "told_day as emailedDay"])
    .where("id", "=", id)
    .where("failing_since", "is not", null)
    .$castTo<FailingEndpoint>()
    .executeTakeFirst();

/** Unless it has moved from there, or was switched off. */
export const findEnabledEndpointAt = (tx: Tx, id: string, url: string) =>
  enabledEndpoints(tx)
    .select(["id", "user_id as userId", "url"])
    .where("id", "=", id)
    .where("url", "=", url)
    .executeTakeFirst();
