import { sql } from "kysely";
import { minUuidAt } from "../../core/ids.ts";
import { firstOf } from "../../core/required.ts";
import type { Queries } from "../../platform/db/database.ts";

const SAMPLE_SIZE = 1_000;

/** Ids are UUIDv7 and sort by time. */
export async function countDeliveriesByStatus(
  db: Queries,
  endpointId: string,
  since: Date,
): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom("webhookDeliveries")
    .select(["status", (row) => row.fn.countAll<number>().as("total")])
    .where("endpointId", "=", endpointId)
    .where("id", ">=", minUuidAt(since))
    .groupBy("status")
    .execute();
  return new Map(rows.map(({ status, total }) => [status, total]));
}

export async function readDurationPercentiles(
  db: Queries,
  endpointId: string,
): Promise<{ p50: number | null; p95: number | null }> {
  const { rows } = await sql<{ p50: number | null; p95: number | null }>`
    with newest as (select id from webhook_deliveries where endpoint_id = ${endpointId} order by id desc limit ${SAMPLE_SIZE})
    select percentile_disc(0.5) within group (order by duration_ms) as p50,
           percentile_disc(0.95) within group (order by duration_ms) as p95
      from webhook_attempts join newest on newest.id = delivery_id`.execute(db);
  return firstOf(rows);
}

export const findFailingSince = async (db: Queries, id: string): Promise<Date | null> => {
  const row = await db
    .selectFrom("webhookEndpoints")
    .select("failingSince")
    .where("id", "=", id)
    .executeTakeFirst();
  return row?.failingSince ?? null;
};
