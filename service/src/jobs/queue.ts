import type pg from "pg";
import { PgBoss } from "pg-boss";
import type { Logger } from "pino";

/** A job that runs by the clock on one of all worker processes. */
export interface ScheduledJob {
  name: string;
  /** Five fields, UTC. */
  cron: string;
  run(): Promise<void>;
}

export interface Queue {
  /** Lets running jobs end, then stops. */
  stop(): Promise<void>;
  /** Whether the queue is at work, as `/readyz` asks. */
  isRunning(): boolean;
}

/** Starts the durable queue (pg-boss, docs/decisions/0006-jobs.md) in the service's own database and its pool. */
export async function startQueue(pool: pg.Pool, log: Logger, jobs: ScheduledJob[]): Promise<Queue> {
  const boss = new PgBoss({ db: { executeSql: (text, values) => pool.query(text, values) } });
  boss.on("error", (error) => log.error({ err: error }, "job queue"));
  await boss.start();
  for (const job of jobs) {
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
  let running = true;
  return {
    isRunning: () => running,
    async stop() {
      running = false;
      await boss.stop({ graceful: true, timeout: 5_000, close: false });
    },
  };
}
