import type pg from "pg";
import { fromKysely, PgBoss, type SendOptions } from "pg-boss";
import type { Logger } from "pino";
import { NIL } from "uuid";
import type { Queries } from "../db/database.ts";
import { inPipeline, waitForAll } from "../db/pipeline.ts";
import { PREPARED_MARK } from "../db/prepared.ts";
import type { JobStats } from "./job-stats.ts";

declare module "../../core/context.ts" {
  interface Context {
    jobs: JobQueue;
  }
}

/** A kind of queued job, retried until it succeeds or runs out of attempts. */
export interface JobDefinition {
  name: string;
  retries: number;
  /** The delays between attempts double, from the first to the longest. */
  retryDelaySeconds: number;
  maxRetryDelaySeconds: number;
  /** A longer attempt counts as failed: its process may be dead. */
  attemptTimeoutSeconds: number;
}

export interface JobStatus extends JobStats {
  waiting: number;
  /** In the last week. */
  givenUp: number;
}

/** The part of the queue that requests jobs; a worker runs them. */
export interface JobQueue {
  /** Requests a job in the caller's transaction: it runs if and only if that commits. */
  send(tx: Queries, name: string, data: object): Promise<void>;
  /** Requests a job for each of `data`, by one statement. */
  sendMany(tx: Queries, name: string, data: object[]): Promise<void>;
  /** The cron expression of a scheduled job; null: no worker has scheduled it. Precedes `sendScheduled`. */
  findSchedule(name: string): Promise<string | null>;
  /** Requests one run of a scheduled job and returns the id of the job; null: one waits or runs already. */
  sendScheduled(tx: Queries, name: string): Promise<string | null>;
  /** Of the kinds that can be requested. */
  readonly names: string[];
  /** All scheduled jobs and all kinds of queued jobs. */
  readStatus(): Promise<JobStatus[]>;
  close(): Promise<void>;
}

const DAY_SECONDS = 86_400;
const COMPLETED_RETENTION_SECONDS = DAY_SECONDS;
const FAILED_RETENTION_SECONDS = 7 * DAY_SECONDS;

/** The suffix of the queue for jobs without attempts left. */
const GIVEN_UP = "-given-up";
const deadLetterQueueOf = (name: string) => name + GIVEN_UP;

export const bossDatabase = (pool: pg.Pool) => ({
  executeSql: (text: string, values?: unknown[]) => pool.query(text, values),
});

/** For many writes that need no order: each is a transaction, but none waits for the answer to the one before. */
export const withPipelinedBoss = <T>(pool: pg.Pool, work: (boss: PgBoss) => Promise<T>): Promise<T> =>
  inPipeline(pool, (db) =>
    work(new PgBoss({ db: fromKysely(db.withoutPlugins()), supervise: false, schedule: false })),
  );

/** pg-boss requests the jobs of a kind by one long text, which takes longer to plan than to execute. */
function preparedFor(tx: Queries, statementName: string): ReturnType<typeof fromKysely> {
  const { executeSql } = fromKysely(tx.withoutPlugins());
  return { executeSql: (text, values) => executeSql(`${PREPARED_MARK}${statementName}\n${text}`, values) };
}

/** Creates the queue's tables if missing (pg-boss, docs/decisions/0006-jobs.md). */
export async function openJobQueue(pool: pg.Pool, log: Logger, kinds: JobDefinition[]): Promise<JobQueue> {
  const boss = new PgBoss({ db: bossDatabase(pool), supervise: false, schedule: false });
  boss.on("error", (error) => log.error({ err: error }, "job queue"));
  await createTables(boss);
  const known = new Set((await boss.getQueues()).map((queue) => queue.name));
  const needed = kinds.flatMap(({ name }) => [deadLetterQueueOf(name), name]);
  await withPipelinedBoss(pool, (pipelined) =>
    waitForAll(needed.filter((name) => !known.has(name)).map((name) => pipelined.createQueue(name))),
  );
  // pg-boss reads a queue's settings at its first use and caches them. Inside the transaction that requests a job, that
  // would need a second connection, and many parallel requests would deadlock on the pool.
  for (const { name } of kinds) await boss.findJobs(name, { id: NIL });
  const optionsByName = new Map(kinds.map((kind) => [kind.name, optionsOf(kind)]));
  const optionsFor = (name: string) => {
    const options = optionsByName.get(name);
    if (!options) throw new TypeError(`there is no kind of job named ${name}`);
    return options;
  };
  return {
    async send(tx, name, data) {
      await boss.send(name, data, { ...optionsFor(name), db: preparedFor(tx, `send_job_${name}`) });
    },
    async sendMany(tx, name, data) {
      const options = optionsFor(name);
      const jobs = data.map((one) => ({ ...options, data: one }));
      await boss.insert(name, jobs, { db: preparedFor(tx, `insert_jobs_${name}`) });
    },
    async findSchedule(name) {
      // PostgreSQL takes no NUL in a text.
      if (name.includes("\0")) return null;
      const { rows } = await pool.query<{ cron: string }>(
        "select cron from pgboss.schedule where name = $1",
        [name],
      );
      // As above, outside of the transaction.
      if (rows[0]) await boss.findJobs(name, { id: NIL });
      return rows[0]?.cron ?? null;
    },
    sendScheduled: (tx, name) =>
      boss.send(name, null, { ...SCHEDULED_JOB_OPTIONS, db: fromKysely(tx.withoutPlugins()) }),
    names: kinds.map(({ name }) => name),
    readStatus: () => readJobStatus(pool, kinds),
    close: () => boss.stop({ close: false }),
  };
}

/** A worker without a heartbeat for this long is dead, and another one restarts its job. */
export const HEARTBEAT_SECONDS = 30;
export const SCHEDULED_JOB_OPTIONS = { heartbeatSeconds: HEARTBEAT_SECONDS };

/** Unique violation; schema, table or object exists already. */
const ALREADY_EXISTS = /^(23505|42P0[67]|42710)$/;

/** `create schema if not exists` of two parallel processes fails in one of them. */
const createTables = (boss: PgBoss) =>
  boss.start().catch((error) => (ALREADY_EXISTS.test(error.code) ? boss.start() : Promise.reject(error)));

/** Set on each job, since a queue of an older version keeps its older settings. */
const optionsOf = (kind: JobDefinition) =>
  ({
    retryLimit: kind.retries,
    retryDelay: kind.retryDelaySeconds,
    retryBackoff: true,
    retryDelayMax: kind.maxRetryDelaySeconds,
    expireInSeconds: kind.attemptTimeoutSeconds,
    heartbeatSeconds: HEARTBEAT_SECONDS,
    deleteAfterSeconds: COMPLETED_RETENTION_SECONDS,
    deadLetter: deadLetterQueueOf(kind.name),
  }) satisfies SendOptions;

/** The kinds with a job that may start now, of `names`. */
export async function listReadyQueues(pool: pg.Pool, names: string[]): Promise<string[]> {
  // Its ranges keep it from being prepared (db/repeated-statements.ts): of a plan from the time when the table was small, a scan would
  // remain. The limit keeps one lookup for each kind, where a join would scan the table.
  const { rows } = await pool.query<{ name: string }>(
    `select name from unnest($1::text[]) as known (name)
      where (select true from pgboss.job j
              where j.name = known.name and j.state < 'active' and not j.blocked and j.start_after <= pgboss.job_now()
              limit 1)`,
    [names],
  );
  return rows.map(({ name }) => name);
}

/** Includes kinds that were never requested, without a job run. */
export async function readJobStatus(pool: pg.Pool, kinds: JobDefinition[]): Promise<JobStatus[]> {
  const { rows } = await pool.query<JobStatus>(
    `with counted as (
       select name, count(*) as waiting,
              count(*) filter (where created_on > pgboss.job_now() - $2 * interval '1 second') as lately
         from pgboss.job where state < 'active' group by name)
     select name, r.period_seconds as "periodSeconds", r.known_since as "knownSince", coalesce(r.runs, 0) as runs,
            coalesce(r.failures, 0) as failures, r.last_success_at as "lastSuccessAt", r.last_failure_at as "lastFailureAt",
            coalesce((select waiting from counted c where c.name = known.name), 0) as waiting,
            coalesce((select lately from counted c where c.name = known.name || $3), 0) as "givenUp"
       from (select unnest($1::text[]) as name union select job from job_runs) known
       left join job_runs r on r.job = known.name order by name`,
    [kinds.map(({ name }) => name), FAILED_RETENTION_SECONDS, GIVEN_UP],
  );
  return rows;
}
