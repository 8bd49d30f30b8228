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

export const listFailingEndpoints = (db: Queries, since: Date) =>
  enabledEndpoints(db).select("id").where("failing_since", "<=", since).orderBy("id").execute();

/** Endpoints that succeed again, but had deliveries that exhausted their attempts, with no email within a day. */
export const listEndpointsWithExhaustedDeliveries = (db: Queries, emailedBefore: Date) =>
  endpointsWithExhaustedDeliveries(db, emailedBefore).select("id").orderBy("id").execute();

const endpointsWithExhaustedDeliveries = (db: Queries, emailedBefore: Date) =>
  enabledEndpoints(db)
    .where("exhausted_deliveries", ">", 0)
    // While the endpoint fails, the email about that is enough.
    .where("failing_since", "is", null)
    .where((row) =>
      row.or([row("exhausted_emailed_at", "is", null), row("exhausted_emailed_at", "<=", emailedBefore)]),
    );

/** Returns the count and resets it. The caller holds the lock of the queue. */
export async function resetExhaustedCount(tx: Tx, id: string, emailedBefore: Date, now: Date) {
  const row = await endpointsWithExhaustedDeliveries(tx, emailedBefore)
    .select(["user_id as userId", "url", "exhausted_deliveries as count"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row)
    await tx
      .updateTable("webhook_endpoints")
      .set({ exhausted_deliveries: 0, exhausted_emailed_at: now })
      .where("id", "=", id)
      .execute();
  return row;
}

/** Read again under the lock; undefined when the endpoint succeeded meanwhile. */
export const findFailingEndpoint = (tx: Tx, id: string): Promise<FailingEndpoint | undefined> =>
  enabledEndpoints(tx)
    .select(["id", "user_id as userId", "url", "failing_since as failingSince"])
    .select(["failed_deliveries as failedDeliveries", "emailed_day as emailedDay"])
    .where("id", "=", id)
    .where("failing_since", "is not", null)
    .$castTo<FailingEndpoint>()
    .executeTakeFirst();

/** Unless its URL changed or it was disabled meanwhile. */
export const findEnabledEndpointAt = (tx: Tx, id: string, url: string) =>
  enabledEndpoints(tx)
    .select(["id", "user_id as userId", "url"])
    .where("id", "=", id)
    .where("url", "=", url)
    .executeTakeFirst();
