import type pg from "pg";
import { fromKysely, PgBoss, type SendOptions } from "pg-boss";
import type { Logger } from "pino";
import type { Queries } from "../db/database.ts";

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

export interface JobCount {
  name: string;
  waiting: number;
  /** In the last week. */
  givenUp: number;
}

/** What any process needs of the queue: to ask for jobs. A worker's `startQueue` runs them. */
export interface Jobs {
  /** Asks for a job in the caller's transaction: it will be run if and only if that commits, whoever is killed then. */
  send(tx: Queries, name: string, data: object): Promise<void>;
  count(): Promise<JobCount[]>;
  close(): Promise<void>;
}

const DAY_SECONDS = 86_400;
const DONE_KEPT_SECONDS = DAY_SECONDS;
const GIVEN_UP_KEPT_SECONDS = 7 * DAY_SECONDS;

/** Where the jobs of a kind go that were tried in vain. */
const givenUp = (name: string) => `${name}-given-up`;

export const bossDatabase = (pool: pg.Pool) => ({
  executeSql: (text: string, values?: unknown[]) => pool.query(text, values),
});

/** Makes the queue's tables where there are none (pg-boss, docs/decisions/0006-jobs.md). */
export async function openJobs(pool: pg.Pool, log: Logger, kinds: JobKind[]): Promise<Jobs> {
  const boss = new PgBoss({ db: bossDatabase(pool), supervise: false, schedule: false });
  boss.on("error", (error) => log.error({ err: error }, "job queue"));
  await boss.start();
  const known = new Set((await boss.getQueues()).map((queue) => queue.name));
  const needed = kinds.flatMap(({ name }) => [givenUp(name), name]);
  for (const name of needed.filter((one) => !known.has(one))) await boss.createQueue(name);
  const optionsByName = new Map(kinds.map((kind) => [kind.name, optionsOf(kind)]));
  return {
    async send(tx, name, data) {
      const options = optionsByName.get(name);
      if (!options) throw new TypeError(`there is no kind of job named ${name}`);
      await boss.send(name, data, { ...options, db: fromKysely(tx) });
    },
    count: () => Promise.all(kinds.map((kind) => countJobs(pool, kind))),
    close: () => boss.stop({ close: false }),
  };
}

/** Said of each job rather than of its queue, so that a queue made by an older version does not keep its older rules. */
const optionsOf = (kind: JobKind): SendOptions => ({
  retryLimit: kind.retries,
  retryDelay: kind.firstWaitSeconds,
  retryBackoff: true,
  retryDelayMax: kind.longestWaitSeconds,
  expireInSeconds: kind.attemptSeconds,
  deleteAfterSeconds: DONE_KEPT_SECONDS,
  deadLetter: givenUp(kind.name),
});

export async function countJobs(pool: pg.Pool, { name }: JobKind): Promise<JobCount> {
  const { rows } = await pool.query(
    `select count(*) filter (where name = $1) as waiting,
            count(*) filter (where name = $2 and created_on > pgboss.job_now() - $3 * interval '1 second') as given_up
       from pgboss.job where name in ($1, $2) and state < 'active'`,
    [name, givenUp(name), GIVEN_UP_KEPT_SECONDS],
  );
  return { name, waiting: rows[0].waiting, givenUp: rows[0].given_up };
}
