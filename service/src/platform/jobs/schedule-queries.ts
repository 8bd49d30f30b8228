import { sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../db/database.ts";

/** The last finished scheduled time. For a new schedule, now: its times count from here. */
export async function findLastScheduledRun(db: Queries, job: string, now: Date): Promise<Date> {
  await sql`
    insert into scheduled_runs (job, slot, done_at) values (${job}, '-infinity', ${now}) on conflict do nothing`.execute(
    db,
  );
  const { rows } = await sql<{ last: Date }>`
    select coalesce(max(slot) filter (where slot > '-infinity'), min(done_at)) as last
      from scheduled_runs where job = ${job} and done_at is not null`.execute(db);
  return firstOf(rows).last;
}

/** Does nothing when it has begun. */
export const beginScheduledRun = (db: Queries, job: string, slot: Date) =>
  db
    .insertInto("scheduledRuns")
    .values({ job, slot })
    .onConflict((conflict) => conflict.doNothing())
    .execute();

/** Prevents the end of the scheduled run until the transaction ends. Returns false when it has ended. */
export async function lockScheduledRun(tx: Tx, job: string, slot: Date): Promise<boolean> {
  const row = await tx
    .selectFrom("scheduledRuns")
    .select("slot")
    .where("job", "=", job)
    .where("slot", "=", slot)
    .where("doneAt", "is", null)
    .forShare()
    .executeTakeFirst();
  return row !== undefined;
}

/** Waits for transactions of the run that are still writing. */
export const endScheduledRun = (db: Queries, job: string, slot: Date, now: Date) =>
  db
    .updateTable("scheduledRuns")
    .set({ doneAt: now })
    .where("job", "=", job)
    .where("slot", "=", slot)
    .where("doneAt", "is", null)
    .execute();
