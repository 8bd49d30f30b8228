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

/** `part` counts from `since`, each of `partMs`. */
export async function countDeliveriesByTime(
  db: Queries,
  endpointId: string,
  since: Date,
  partMs: number,
): Promise<{ part: number; succeeded: number; failed: number; waiting: number }[]> {
  const { rows } = await sql<{ part: number; succeeded: number; failed: number; waiting: number }>`
    select floor(extract(epoch from created_at - ${since}) * 1000 / ${partMs})::integer as part,
           count(*) filter (where status = 'succeeded') as succeeded,
           count(*) filter (where status = 'failed') as failed,
           count(*) filter (where status in ('pending', 'retrying')) as waiting
      from webhook_deliveries
     where endpoint_id = ${endpointId} and id >= ${minUuidAt(since)} and created_at >= ${since}
     group by part`.execute(db);
  return rows;
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
