import type { Health } from "@stoa/contract";
import { sql } from "kysely";
import type { Database } from "../../platform/db/database.ts";

interface HealthHour {
  service: string;
  hour: Date;
  state: Health["state"];
}

/** The worst state of an hour stays. Deletes what is older than the shown hours. */
export async function recordHealthHour(db: Database, rows: HealthHour[], deleteBefore: Date): Promise<void> {
  await db
    .insertInto("healthHours")
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(["service", "hour"]).doUpdateSet({
        state: sql`case when 'failed' in (health_hours.state, excluded.state) then 'failed'
                        when 'warning' in (health_hours.state, excluded.state) then 'warning'
                        else 'ok' end`,
      }),
    )
    .execute();
  await db.deleteFrom("healthHours").where("hour", "<", deleteBefore).execute();
}

export const listHealthHours = (db: Database, since: Date): Promise<HealthHour[]> =>
  db
    .selectFrom("healthHours")
    .select(["service", "hour", "state"])
    .where("hour", ">=", since)
    .$castTo<HealthHour>()
    .execute();
