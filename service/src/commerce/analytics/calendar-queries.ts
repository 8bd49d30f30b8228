import { sql } from "kysely";
import type { Queries } from "../../platform/db/database.ts";
import { hasSqlState, INVALID_PARAMETER_VALUE } from "../../platform/db/sql-state.ts";

/**
 * A day begins at the first instant at which local clocks show its date. PostgreSQL picks the later of two midnights when clocks are set
 * back over midnight. Since 1980 such changes were 30 minutes, or 1 to 3 hours. null: unknown zone.
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
    // PostgreSQL's time zone tables may lack a zone that the runtime supports.
    if (hasSqlState(error, INVALID_PARAMETER_VALUE)) return null;
    throw error;
  }
}
