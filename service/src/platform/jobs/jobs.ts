import type pg from "pg";
import { fromKysely, PgBoss, type SendOptions } from "pg-boss";
import type { Logger } from "pino";
import { NIL } from "uuid";
import type { Queries } from "../db/database.ts";
import type { JobFigures } from "./rounds.ts";

declare module "../../core/context.ts" {
  interface Context {
    jobs: Jobs;
  }
}

/** A kind of job that is asked for, and tried again until it is done or given up. */
export interface JobKind {
  name: string;
  retries: number;
  /** The waits between attempts double, from the first to the longest. */
  firstWaitSeconds: number;
  longestWaitSeconds: number;
  /** An attempt that takes longer counts as failed: its process may be dead. */
  attemptSeconds: number;
}

export interface JobCount extends JobFigures {
  waiting: number;
  /** In the last week. */
  givenUp: number;
}

/** What any process needs of the queue: to ask for jobs. A worker's `startQueue` runs them. */
export interface Jobs {
  /** Asks for a job in the caller's transaction: it will be run if and only if that commits, whoever is killed then. */
  send(tx: Queries, name: string, data: object): Promise<void>;
  /** Every job that is done by the clock, and every kind that can be asked for. */
  count(): Promise<JobCount[]>;
  close(): Promise<void>;
}

const DAY_SECONDS = 86_400;
const DONE_KEPT_SECONDS = DAY_SECONDS;
const GIVEN_UP_KEPT_SECONDS = 7 * DAY_SECONDS;

/** Where the jobs of a kind go that were tried in vain: the queue of its name and this. */
const GIVEN_UP = "-given-up";
const givenUp = (name: string) => name + GIVEN_UP;

export const bossDatabase = (pool: pg.Pool) => ({
  executeSql: (text: string, values?: unknown[]) => pool.query(text, values),
});

/** Makes the queue's tables where there are none (pg-boss, docs/decisions/0006-jobs.md). */
export async function openJobs(pool: pg.Pool, log: Logger, kinds: JobKind[]): Promise<Jobs> {
  const boss = new PgBoss({ db: bossDatabase(pool), supervise: false, schedule: false });
  boss.on("error", (error) => log.error({ err: error }, "job queue"));
  await makeTables(boss);
  const known = new Set((await boss.getQueues()).map((queue) => queue.name));
  const needed = kinds.flatMap(({ name }) => [givenUp(name), name]);
  for (const name of needed.filter((one) => !known.has(one))) await boss.createQueue(name);
  // It reads what a queue is when it first hears of it, and keeps that. In the transaction of whoever asks for a job this would take a
  // second connection: as many who ask at once as there are would wait for each other.
  for (const { name } of kinds) await boss.findJobs(name, { id: NIL });
  const optionsByName = new Map(kinds.map((kind) => [kind.name, optionsOf(kind)]));
  return {
    async send(tx, name, data) {
      const options = optionsByName.get(name);
      if (!options) throw new TypeError(`there is no kind of job named ${name}`);
      await boss.send(name, data, { ...options, db: fromKysely(tx) });
    },
    count: () => countJobs(pool, kinds),
    close: () => boss.stop({ close: false }),
  };
}

/** A worker that is silent for so long about a job is dead, and another one begins it anew. */
export const HEARTBEAT_SECONDS = 30;

/** Unique violation, and schema, table or object that exists already. */
const MADE_MEANWHILE = /^(23505|42P0[67]|42710)$/;

/** `create schema if not exists` of two processes at once fails in one of them. */
const makeTables = (boss: PgBoss) =>
  boss.start().catch((error) => (MADE_MEANWHILE.test(error.code) ? boss.start() : Promise.reject(error)));

/** Said of each job rather than of its queue, so that a queue made by an older version does not keep its older rules. */
const optionsOf = (kind: JobKind): SendOptions => ({
  retryLimit: kind.retries,
  retryDelay: kind.firstWaitSeconds,
  retryBackoff: true,
  retryDelayMax: kind.longestWaitSeconds,
  expireInSeconds: kind.attemptSeconds,
  heartbeatSeconds: HEARTBEAT_SECONDS,
  deleteAfterSeconds: DONE_KEPT_SECONDS,
  deadLetter: givenUp(kind.name),
});

/** What was not asked for yet is among them, without a round. */
export async function countJobs(pool: pg.Pool, kinds: JobKind[]): Promise<JobCount[]> {
  const { rows } = await pool.query<JobCount>(
    `with counted as (
       select name, count(*) as waiting,
              count(*) filter (where created_on > pgboss.job_now() - $2 * interval '1 second') as lately
         from pgboss.job where state < 'active' group by name)
     select name, r.period_seconds as "periodSeconds", r.known_since as "knownSince", coalesce(r.runs, 0) as runs,
            coalesce(r.failures, 0) as failures, r.last_success_at as "lastSuccessAt", r.last_failure_at as "lastFailureAt",
            coalesce((select waiting from counted c where c.name = known.name), 0) as waiting,
            coalesce((select lately from counted c where c.name = known.name || $3), 0) as "givenUp"
       from (select unnest($1::text[]) as name union select job from job_rounds) known
       left join job_rounds r on r.job = known.name order by name`,
    [kinds.map(({ name }) => name), GIVEN_UP_KEPT_SECONDS, GIVEN_UP],
  );
  return rows;
}
