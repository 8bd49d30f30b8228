import type pg from "pg";
import { fromKysely, PgBoss, type SendOptions } from "pg-boss";
import type { Logger } from "pino";
import { NIL } from "uuid";
import type { Queries } from "../db/database.ts";
import type { JobStats } from "./job-stats.ts";

declare module "../../core/context.ts" {
  interface Context {
    jobs: JobQueue;
  }
}

/** A kind of job that is asked for, and tried again until it is done or given up. */
export interface JobDefinition {
  name: string;
  retries: number;
  /** The waits between attempts double, from the first to the longest. */
  retryDelaySeconds: number;
  maxRetryDelaySeconds: number;
  /** An attempt that takes longer counts as failed: its process may be dead. */
  attemptTimeoutSeconds: number;
}

export interface JobStatus extends JobStats {
  waiting: number;
  /** In the last week. */
  givenUp: number;
}

/** What any process needs of the queue: to ask for jobs. A worker's `startQueue` runs them. */
export interface JobQueue {
  /** Asks for a job in the caller's transaction: it will be run if and only if that commits, whoever is killed then. */
  send(tx: Queries, name: string, data: object): Promise<void>;
  /** Every job that is done by the clock, and every kind that can be asked for. */
  readStatus(): Promise<JobStatus[]>;
  close(): Promise<void>;
}

const DAY_SECONDS = 86_400;
const COMPLETED_RETENTION_SECONDS = DAY_SECONDS;
const FAILED_RETENTION_SECONDS = 7 * DAY_SECONDS;

/** Where the jobs of a kind go that were tried in vain: the queue of its name and this. */
const GIVEN_UP = "-given-up";
const deadLetterQueueOf = (name: string) => name + GIVEN_UP;

export const bossDatabase = (pool: pg.Pool) => ({
  executeSql: (text: string, values?: unknown[]) => pool.query(text, values),
});

/** Makes the queue's tables where there are none (pg-boss, docs/decisions/0006-jobs.md). */
export async function openJobQueue(pool: pg.Pool, log: Logger, kinds: JobDefinition[]): Promise<JobQueue> {
  const boss = new PgBoss({ db: bossDatabase(pool), supervise: false, schedule: false });
  boss.on("error", (error) => log.error({ err: error }, "job queue"));
  await createTables(boss);
  const known = new Set((await boss.getQueues()).map((queue) => queue.name));
  const needed = kinds.flatMap(({ name }) => [deadLetterQueueOf(name), name]);
  for (const name of needed.filter((one) => !known.has(one))) await boss.createQueue(name);
  // It reads what a queue is when it first hears of it, and keeps that. In the transaction of whoever asks for a job this would take a
  // second connection: as many who ask at once as there are would wait for each other.
  for (const { name } of kinds) await boss.findJobs(name, { id: NIL });
  const optionsByName = new Map(kinds.map((kind) => [kind.name, optionsOf(kind)]));
  return {
    async send(tx, name, data) {
      const options = optionsByName.get(name);
      if (!options) throw new TypeError(`there is no kind of job named ${name}`);
      await boss.send(name, data, { ...options, db: fromKysely(tx.withoutPlugins()) });
    },
    readStatus: () => readJobStatus(pool, kinds),
    close: () => boss.stop({ close: false }),
  };
}

/** A worker that is silent for so long about a job is dead, and another one begins it anew. */
export const HEARTBEAT_SECONDS = 30;

/** Unique violation, and schema, table or object that exists already. */
const ALREADY_EXISTS = /^(23505|42P0[67]|42710)$/;

/** `create schema if not exists` of two processes at once fails in one of them. */
const createTables = (boss: PgBoss) =>
  boss.start().catch((error) => (ALREADY_EXISTS.test(error.code) ? boss.start() : Promise.reject(error)));

/** Said of each job rather than of its queue, so that a queue made by an older version does not keep its older rules. */
const optionsOf = (kind: JobDefinition): SendOptions => ({
  retryLimit: kind.retries,
  retryDelay: kind.retryDelaySeconds,
  retryBackoff: true,
  retryDelayMax: kind.maxRetryDelaySeconds,
  expireInSeconds: kind.attemptTimeoutSeconds,
  heartbeatSeconds: HEARTBEAT_SECONDS,
  deleteAfterSeconds: COMPLETED_RETENTION_SECONDS,
  deadLetter: deadLetterQueueOf(kind.name),
});

/** What was not asked for yet is among them, without a round. */
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
