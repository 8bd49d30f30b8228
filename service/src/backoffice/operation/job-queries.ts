import { type RawBuilder, sql } from "kysely";
import { firstOf } from "../../core/required.ts";
import type { Queries, Tx } from "../../platform/db/database.ts";
import { offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";

/** Jobs without attempts left are in a queue of their own, whose name ends so. */
const GIVEN_UP = "-given-up";
const isGivenUp = sql`right(name, ${sql.lit(GIVEN_UP.length)}) = ${sql.lit(GIVEN_UP)}`;
const isOurs = sql`left(name, 10) <> '__pgboss__'`;
const sourceName = sql<string>`left(name, -${sql.lit(GIVEN_UP.length)})`;
const errorIn = (output: RawBuilder<unknown>) =>
  sql`coalesce(${output} ->> 'error', ${output} ->> 'message', ${output} -> 'value' ->> 'message')`;

export type JobState = "waiting" | "running" | "failed";

const conditions: Record<JobState, RawBuilder<unknown>> = {
  waiting: sql`(state < 'active' and not ${isGivenUp})`,
  running: sql`(state = 'active' and not ${isGivenUp})`,
  failed: sql`(state = 'created' and ${isGivenUp})`,
};

export interface JobRow {
  id: string;
  queue: string;
  state: JobState;
  attempts: number;
  error: string | null;
  createdAt: Date;
  nextAttemptAt: Date | null;
  startedAt: Date | null;
  failedAt: Date | null;
}

interface JobFilter extends Paging {
  states: JobState[];
  queue?: string | undefined;
}

const anyOf = (states: JobState[]) =>
  sql.join(
    states.map((state) => conditions[state]),
    sql` or `,
  );

export async function listJobRows(db: Queries, filter: JobFilter): Promise<Page<JobRow>> {
  const { states, queue = null, limit } = filter;
  const matching = sql`
    from pgboss.job where ${isOurs} and (${anyOf(states)})
      and (${queue}::text is null or name in (${queue}, ${queue} || ${GIVEN_UP}))`;
  const { rows } = await sql<JobRow>`
    select id, case when ${isGivenUp} then ${sourceName} else name end as queue,
           case when ${isGivenUp} then 'failed' when state = 'active' then 'running' else 'waiting' end as state,
           case when ${isGivenUp} then source_retry_count + 1
                when state = 'created' then 0
                when state = 'active' then retry_count + 1
                else greatest(retry_count, 1) end as attempts,
           case when ${isGivenUp} then ${errorIn(sql`source_output`)} else ${errorIn(sql`output`)} end as error,
           case when ${isGivenUp} then source_created_on else created_on end as "createdAt",
           case when state < 'active' and not ${isGivenUp} then start_after end as "nextAttemptAt",
           case when state = 'active' then started_on end as "startedAt",
           case when ${isGivenUp} then created_on end as "failedAt"
      ${matching} order by created_on desc, id limit ${limit} offset ${offsetOf(filter)}`.execute(db);
  const total = await sql<{ total: number }>`select count(*) as total ${matching}`.execute(db);
  return { items: rows, total: firstOf(total.rows).total };
}

export interface TakenJob {
  queue: string;
  data: object;
}

/** Of parallel calls, one gets the job. */
export async function takeFailedJobs(
  tx: Tx,
  { id = null, queues = null, limit }: { id?: string | null; queues?: string[] | null; limit: number },
): Promise<TakenJob[]> {
  const { rows } = await sql<TakenJob>`
    delete from pgboss.job where (name, id) in (
      select name, id from pgboss.job
       where ${conditions.failed} and (${id}::uuid is null or id = ${id})
         and (${queues}::text[] is null or ${sourceName} = any (${queues}))
       order by created_on limit ${limit} for update skip locked)
    returning ${sourceName} as queue, data`.execute(tx);
  return rows;
}

export async function hastenJob(tx: Tx, id: string): Promise<boolean> {
  const { numAffectedRows } = await sql`
    update pgboss.job set start_after = pgboss.job_now()
     where id = ${id} and ${isOurs} and ${conditions.waiting}`.execute(tx);
  return numAffectedRows === 1n;
}

export async function isJobRunning(tx: Tx, id: string): Promise<boolean> {
  const { rows } = await sql`
    select from pgboss.job where id = ${id} and ${isOurs} and ${conditions.running}`.execute(tx);
  return rows.length > 0;
}

export interface QueueRow {
  name: string;
  running: number;
  cron: string | null;
  lastError: string | null;
}

export async function listQueueRows(db: Queries): Promise<QueueRow[]> {
  const { rows } = await sql<QueueRow>`
    select q.name, s.cron,
           (select count(*) from pgboss.job j where j.name = q.name and j.state = 'active') as running,
           (select ${errorIn(sql`output`)} from pgboss.job j where j.name = q.name and j.state = 'failed'
             order by completed_on desc limit 1) as "lastError"
      from pgboss.queue q left join pgboss.schedule s on s.name = q.name
     where right(q.name, ${GIVEN_UP.length}) <> ${GIVEN_UP}`.execute(db);
  return rows;
}

export type EmailStatus = "waiting" | "failed" | "refused";

export interface UnsentEmailRow {
  id: string;
  recipient: string;
  sealedEmail: string | null;
  status: EmailStatus;
  attempts: number;
  error: string | null;
  createdAt: Date;
  nextAttemptAt: Date | null;
  refusedAt: Date | null;
}

/** Joined with all jobs of the queue at once: with a dead mail server, thousands of emails wait. */
const unsentEmails = (queue: string) => sql`
  with queued as materialized (
    select distinct on (data ->> 'mailId') data ->> 'mailId' as mail_id, ${isGivenUp} as is_given_up,
           case when ${isGivenUp} then source_retry_count + 1 when state = 'created' then 0
                when state = 'active' then retry_count + 1 else greatest(retry_count, 1) end as attempts,
           case when ${isGivenUp} then ${errorIn(sql`source_output`)} else ${errorIn(sql`output`)} end as error,
           case when ${isGivenUp} then null else start_after end as next_at
      from pgboss.job
     where name in (${queue}, ${queue} || ${GIVEN_UP}) and state <= 'active'
     order by data ->> 'mailId', ${isGivenUp})
  select e.id, e.recipient, e.sealed_email as "sealedEmail", e.created_at as "createdAt", e.refused_at as "refusedAt",
         case when e.refused_at is not null then 'refused' when j.is_given_up then 'failed' else 'waiting' end as status,
         coalesce(j.attempts, 0) as attempts, j.error, j.next_at as "nextAttemptAt"
    from emails e left join queued j on j.mail_id = e.id::text
   where e.sent_at is null`;

export async function listUnsentEmailRows(
  db: Queries,
  { queue, statuses, ...paging }: Paging & { queue: string; statuses: EmailStatus[] },
): Promise<Page<UnsentEmailRow>> {
  const { rows } = await sql<UnsentEmailRow & { total: number }>`
    select u.*, count(*) over () as total from (${unsentEmails(queue)}) u
     where status = any (${statuses}) order by "createdAt" desc, id desc
     limit ${paging.limit} offset ${offsetOf(paging)}`.execute(db);
  return { items: rows, total: rows[0]?.total ?? 0 };
}

/** Locks the email, so that of parallel calls one requests the job. */
export async function lockUnsentEmail(tx: Tx, id: string): Promise<{ refusedAt: Date | null } | undefined> {
  return tx
    .selectFrom("emails")
    .select("refusedAt")
    .where("id", "=", id)
    .where("sentAt", "is", null)
    .forUpdate()
    .executeTakeFirst();
}

export async function listUnsentEmailIds(tx: Tx, limit: number): Promise<string[]> {
  const rows = await tx
    .selectFrom("emails")
    .select("id")
    .where("sentAt", "is", null)
    .where("refusedAt", "is", null)
    .orderBy("createdAt")
    .limit(limit)
    .forUpdate()
    .skipLocked()
    .execute();
  return rows.map(({ id }) => id);
}

/** Makes the waiting jobs of these emails due. Returns the emails without one: they need a new job. */
export async function hastenEmailJobs(tx: Tx, queue: string, mailIds: string[]): Promise<string[]> {
  await sql`
    delete from pgboss.job
     where name = ${queue + GIVEN_UP} and data ->> 'mailId' = any (${mailIds}::text[])`.execute(tx);
  const { rows } = await sql<{ mailId: string }>`
    update pgboss.job set start_after = least(start_after, pgboss.job_now())
     where name = ${queue} and state <= 'active' and data ->> 'mailId' = any (${mailIds}::text[])
    returning data ->> 'mailId' as "mailId"`.execute(tx);
  const hastened = new Set(rows.map(({ mailId }) => mailId));
  return mailIds.filter((id) => !hastened.has(id));
}
