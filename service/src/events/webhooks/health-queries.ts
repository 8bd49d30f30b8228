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
  db.selectFrom("webhookEndpoints").where("deletedAt", "is", null).where("disabledBy", "is", null);

export const listFailingEndpoints = (db: Queries, since: Date) =>
  enabledEndpoints(db).select("id").where("failingSince", "<=", since).orderBy("id").execute();

/** Endpoints that succeed again, but had deliveries that exhausted their attempts, with no email within a day. */
export const listEndpointsWithExhaustedDeliveries = (db: Queries, emailedBefore: Date) =>
  endpointsWithExhaustedDeliveries(db, emailedBefore).select("id").orderBy("id").execute();

const endpointsWithExhaustedDeliveries = (db: Queries, emailedBefore: Date) =>
  enabledEndpoints(db)
    .where("exhaustedDeliveries", ">", 0)
    // While the endpoint fails, the email about that is enough.
    .where("failingSince", "is", null)
    .where((row) =>
      row.or([row("exhaustedEmailedAt", "is", null), row("exhaustedEmailedAt", "<=", emailedBefore)]),
    );

/** Returns the count and resets it. The caller holds the lock of the queue. */
export async function resetExhaustedCount(tx: Tx, id: string, emailedBefore: Date, now: Date) {
  const row = await endpointsWithExhaustedDeliveries(tx, emailedBefore)
    .select(["userId", "url", "exhaustedDeliveries as count"])
    .where("id", "=", id)
    .executeTakeFirst();
  if (row)
    await tx
      .updateTable("webhookEndpoints")
      .set({ exhaustedDeliveries: 0, exhaustedEmailedAt: now })
      .where("id", "=", id)
      .execute();
  return row;
}

/** Read again under the lock; undefined when the endpoint succeeded meanwhile. */
export const findFailingEndpoint = (tx: Tx, id: string): Promise<FailingEndpoint | undefined> =>
  enabledEndpoints(tx)
    .select(["id", "userId", "url", "failingSince", "failedDeliveries", "emailedDay"])
    .where("id", "=", id)
    .where("failingSince", "is not", null)
    .$castTo<FailingEndpoint>()
    .executeTakeFirst();

/** Unless its URL changed or it was disabled meanwhile. */
export const findEnabledEndpointAt = (tx: Tx, id: string, url: string) =>
  enabledEndpoints(tx)
    .select(["id", "userId", "url"])
    .where("id", "=", id)
    .where("url", "=", url)
    .executeTakeFirst();
