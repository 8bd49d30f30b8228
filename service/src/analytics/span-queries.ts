import { sql } from "kysely";
import type { Queries } from "../db/database.ts";

interface Wish {
  startDate: string;
  endDate: string;
  interval: "day" | "week" | "month";
  timezone: string;
}

/** PostgreSQL's own tables of time zones may lack one that the runtime knows. */
const INVALID_PARAMETER = "22023";

/**
 * The first day of each bucket and when it begins, then the day after the last one. A day begins at the first instant at which clocks
 * show its date: where they are set back over midnight, that is before the midnight that PostgreSQL means, by as much as they are
 * set back; since 1980 that was half an hour, and one to three. null: it does not know the zone.
 */
export async function listBoundaries(
  db: Queries,
  { startDate, endDate, interval, timezone }: Wish,
): Promise<{ date: string; at: Date }[] | null> {
  const query = sql<{ date: string; at: Date }>`
    select to_char(midnight, 'YYYY-MM-DD') as date, first.at
      from generate_series(${startDate}::timestamp, ${endDate}::timestamp + interval '1 day', '1 day') as midnight
     cross join lateral (
       select min(at) as at
         from (select midnight at time zone ${timezone}) as meant (at0)
        cross join unnest(array['0', '30 minutes', '1 hour', '2 hours', '3 hours']::interval[]) as back
        cross join lateral (values (at0 - back)) as candidate (at)
        where at at time zone ${timezone} >= midnight) as first
     where midnight in (${startDate}::timestamp, ${endDate}::timestamp + interval '1 day')
        or date_trunc(${interval}, midnight) = midnight
     order by midnight`;
  try {
    return (await query.execute(db)).rows;
  } catch (error) {
    if ((error as { code?: string }).code === INVALID_PARAMETER) return null;
    throw error;
  }
}
