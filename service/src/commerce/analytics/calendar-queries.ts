import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";

/** PostgreSQL's own tables of time zones may lack one that the runtime knows. */
const INVALID_PARAMETER = "22023";

/**
 * When each day of a year begins. A day begins at the first instant at which clocks show its date: where they are set back over
 * midnight, that is before the midnight that PostgreSQL means, by as much as they are set back; since 1980 that was half an hour, and
 * one to three. null: it does not know the zone.
 */
export async function listDayStarts(db: Queries, timezone: string, year: number): Promise<Date[] | null> {
  const query = sql<{ at: Date }>`
    select first.at
      from generate_series(make_timestamp(${year}, 1, 1, 0, 0, 0), make_timestamp(${year}, 12, 31, 0, 0, 0), '1 day') as midnight
     cross join lateral (
       select min(at) as at
         from (select midnight at time zone ${timezone}) as meant (at0)
        cross join unnest(array['0', '30 minutes', '1 hour', '2 hours', '3 hours']::interval[]) as back
        cross join lateral (values (at0 - back)) as candidate (at)
        where at at time zone ${timezone} >= midnight) as first
     order by midnight`;
  try {
    return (await query.execute(db)).rows.map(({ at }) => at);
  } catch (error) {
    if ((error as { code?: string }).code === INVALID_PARAMETER) return null;
    throw error;
  }
}
