import type pg from "pg";
import { type Job, type JobResult, PgBoss } from "pg-boss";
import type { Logger } from "pino";
import { bossDatabase, type JobKind } from "./jobs.ts";

/** A job that runs by the clock on one of all worker processes. */
export interface ScheduledJob {
  name: string;
  /** Five fields, UTC. */
  cron: string;
  run(): Promise<void>;
}

/** A job that is asked for. One that throws is tried again. */
export interface AskedJob extends JobKind {
  /** `signal` aborts when the attempt takes too long or the process must end. */
  run(data: object, signal: AbortSignal): Promise<void>;
}

export interface Queue {
  /** Lets running jobs end, then stops. */
  stop(): Promise<void>;
  /** Whether the queue is at work, as `/readyz` asks. */
  isRunning(): boolean;
}

const AT_ONCE = 5;
const LOOK_EVERY_SECONDS = 1;

/** Starts the durable queue (pg-boss, docs/decisions/0006-jobs.md) in the service's own database and its pool. */
export async function startQueue(
  pool: pg.Pool,
  log: Logger,
  scheduled: ScheduledJob[],
  asked: AskedJob[],
): Promise<Queue> {
  const boss = new PgBoss({ db: bossDatabase(pool) });
  boss.on("error", (error) => log.error({ err: error }, "job queue"));
  await boss.start();
  for (const job of scheduled) await workByTheClock(boss, log, job);
  for (const job of asked) await workWhenAsked(boss, log, job);
  let running = true;
  return {
    isRunning: () => running,
    async stop() {
      running = false;
      await boss.stop({ graceful: true, timeout: 5_000, close: false });
    },
  };
}

async function workByTheClock(boss: PgBoss, log: Logger, job: ScheduledJob): Promise<void> {
  // One at a time on all nodes and none in store: a round that was missed is not made up for, the next does its work.
  await boss.createQueue(job.name, { policy: "exclusive", retryLimit: 0 });
  await boss.schedule(job.name, job.cron);
  await boss.work(job.name, async () => {
    try {
      await job.run();
    } catch (error) {
      log.error({ job: job.name, err: error }, "job failed");
      throw error;
    }
  });
}

/** Each job of a handful ends by itself: one that fails takes no other along. */
async function workWhenAsked(boss: PgBoss, log: Logger, job: AskedJob): Promise<void> {
  const attempt = async ({ id, data, retryCount, signal }: Job<object>): Promise<JobResult> => {
    try {
      await job.run(data, signal);
      return { id, status: "completed" };
    } catch (error) {
      const isLast = retryCount >= job.retries;
      const told = { job: job.name, id, attempt: retryCount + 1, err: error };
      if (isLast) log.error(told, "job given up");
      else log.warn(told, "job failed; it is tried again");
      return { id, status: "failed", output: { error: (error as Error).message } };
    }
  };
  await boss.work(job.name, HOW_TO_WORK, (jobs: Job<object>[]) => Promise.all(jobs.map(attempt)));
}

const HOW_TO_WORK = {
  batchSize: AT_ONCE,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: LOOK_EVERY_SECONDS,
  perJobResults: true,
} as const;
