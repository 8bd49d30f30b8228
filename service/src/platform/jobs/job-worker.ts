import { isDeepStrictEqual } from "node:util";
import { type Job, type JobResult, PgBoss, type Schedule } from "pg-boss";
import { inBatches } from "../../core/batches.ts";
import type { Context } from "../../core/context.ts";
import { inSpan } from "../../core/telemetry/tracing.ts";
import { waitForAll } from "../db/pipeline.ts";
import { runPeriodically } from "./interval.ts";
import {
  bossDatabase,
  type JobDefinition,
  listReadyQueues,
  SCHEDULED_JOB_OPTIONS,
  withPipelinedBoss,
} from "./job-queue.ts";
import {
  cronPeriodSeconds,
  type JobRuns,
  listMissedJobs,
  recordJobRuns,
  registerScheduledJobs,
} from "./job-stats.ts";

/**
 * A job that runs on a schedule in one of all worker processes. A starting worker makes up for missed runs with one.
 * Where every run counts, the job uses scheduled runs (schedule.ts).
 */
export interface ScheduledJob {
  name: string;
  /** Five fields, UTC. */
  cron: string;
  /** Also runs whenever a worker starts, because reports to a stopped service are lost. */
  atStart?: true;
  run(): Promise<void>;
}

/** A queued job; an error triggers a retry. */
export interface QueuedJob extends JobDefinition {
  /** `signal` aborts when the attempt takes too long or the process must end. */
  run(data: object, signal: AbortSignal): Promise<void>;
  batch?: JobBatch;
}

/** For a kind of jobs that cost less together. When a batch fails, each of its jobs runs alone. */
interface JobBatch {
  size: number;
  run(data: object[], signal: AbortSignal): Promise<void>;
}

export interface JobWorker {
  /** Waits for running jobs, then stops. */
  stop(): Promise<void>;
  /** For `/readyz`. */
  isRunning(): boolean;
}

/** Of one kind. */
const AT_ONCE = 5;
/** One statement looks for jobs of all kinds, and wakes the workers of those that have some. */
const POLL_INTERVAL_MS = 500;
/** By itself, each kind looks for its jobs this rarely: one statement each, planned anew. */
const FALLBACK_POLL_SECONDS = 60;
/** The interval of the search for jobs of dead workers. */
const SUPERVISE_EVERY_SECONDS = 15;

type WorkerContext = Pick<Context, "pool" | "log" | "now" | "metrics">;

/** Starts pg-boss (docs/decisions/0006-jobs.md) in the service's own database and pool. */
export async function startJobWorker(
  worker: WorkerContext,
  scheduled: ScheduledJob[],
  asked: QueuedJob[],
): Promise<JobWorker> {
  const boss = new PgBoss({
    db: bossDatabase(worker.pool),
    superviseIntervalSeconds: SUPERVISE_EVERY_SECONDS,
    monitorIntervalSeconds: SUPERVISE_EVERY_SECONDS,
  });
  boss.on("error", (error) => worker.log.error({ err: error }, "job queue"));
  await boss.start();
  const schedules = await boss.getSchedules();
  await unscheduleRemovedJobs(boss, worker, { scheduled, schedules });
  await scheduleNewJobs(boss, worker, { scheduled, schedules });
  const missed = await listMissedJobs(worker.pool, worker.now());
  /** The id of pg-boss's worker, by kind. */
  const workers = new Map<string, string>();
  for (const job of scheduled) {
    workers.set(job.name, await workScheduledJob(boss, worker, job));
    if (job.atStart || missed.has(job.name)) await boss.send(job.name, null, SCHEDULED_JOB_OPTIONS);
  }
  for (const job of asked) workers.set(job.name, await workQueuedJob(boss, worker, job));
  const names = [...workers.keys()];
  let running = true;
  const polling = runPeriodically(POLL_INTERVAL_MS, "poll for jobs", worker.log, async () => {
    // The last round, in stop(), would start jobs that shutdown aborts.
    if (!running) return;
    for (const name of await listReadyQueues(worker.pool, names)) boss.notifyWorker(workers.get(name) ?? "");
  });
  return {
    isRunning: () => running,
    async stop() {
      running = false;
      await polling.stop();
      await boss.stop({ graceful: true, timeout: 5_000, close: false });
    },
  };
}

interface Scheduling {
  scheduled: ScheduledJob[];
  /** As earlier starts stored them. */
  schedules: Schedule[];
}

/** Otherwise jobs of older versions or other settings would be queued forever without a worker. */
async function unscheduleRemovedJobs(
  boss: PgBoss,
  { pool, now }: WorkerContext,
  { scheduled, schedules }: Scheduling,
): Promise<void> {
  const names = new Set(scheduled.map(({ name }) => name));
  for (const { name } of schedules) if (!names.has(name)) await boss.unschedule(name);
  const jobs = scheduled.map(({ name, cron }) => ({ name, periodSeconds: cronPeriodSeconds(cron) }));
  await registerScheduledJobs(pool, jobs, now());
}

/** Each takes two transactions, so that most starts would spend a quarter of a second on writing what is stored. */
async function scheduleNewJobs(
  boss: PgBoss,
  { pool }: WorkerContext,
  { scheduled, schedules }: Scheduling,
): Promise<void> {
  const queues = new Set((await boss.getQueues()).map(({ name }) => name));
  const isStored = ({ name, cron }: ScheduledJob) =>
    queues.has(name) &&
    schedules.some(
      (stored) =>
        stored.name === name &&
        stored.cron === cron &&
        stored.timezone === "UTC" &&
        isDeepStrictEqual(stored.options, SCHEDULED_JOB_OPTIONS),
    );
  const fresh = scheduled.filter((job) => !isStored(job));
  if (fresh.length === 0) return;
  await withPipelinedBoss(pool, async (pipelined) => {
    // One at a time on all nodes, and none queued meanwhile.
    const queue = { policy: "exclusive", retryLimit: 0 } as const;
    await waitForAll(fresh.map(({ name }) => pipelined.createQueue(name, queue)));
    await waitForAll(
      fresh.map(({ name, cron }) => pipelined.schedule(name, cron, null, SCHEDULED_JOB_OPTIONS)),
    );
  });
}

/** Returns the id of pg-boss's worker. */
async function workScheduledJob(boss: PgBoss, worker: WorkerContext, job: ScheduledJob): Promise<string> {
  return boss.work(job.name, { pollingIntervalSeconds: FALLBACK_POLL_SECONDS }, async () => {
    try {
      await inSpan(`job ${job.name}`, {}, () => job.run());
    } catch (error) {
      worker.log.error({ job: job.name, err: error }, "job failed");
      await recordRuns(worker, job.name, { succeeded: 0, failed: 1 });
      throw error;
    }
    await recordRuns(worker, job.name, { succeeded: 1, failed: 0 });
  });
}

/** A failed write of the statistics does not fail the job. */
function recordRuns({ pool, log, now, metrics }: WorkerContext, name: string, runs: JobRuns): Promise<void> {
  metrics.jobRuns.inc({ name }, runs.succeeded + runs.failed);
  if (runs.failed > 0) metrics.jobFailures.inc({ name }, runs.failed);
  return recordJobRuns(pool, name, runs, now()).catch((error) =>
    log.warn({ job: name, err: error }, "how a job went could not be noted"),
  );
}

/** Jobs that are fetched together are independent: a failure affects no other job. Returns the id of pg-boss's worker. */
async function workQueuedJob(boss: PgBoss, worker: WorkerContext, job: QueuedJob): Promise<string> {
  const attempt = async ({ id, data, retryCount, signal }: Job<object>): Promise<JobResult> => {
    try {
      await inSpan(`job ${job.name}`, {}, () => job.run(data, signal));
      return { id, status: "completed" };
    } catch (error) {
      const isLast = retryCount >= job.retries;
      const facts = { job: job.name, id, attempt: retryCount + 1, err: error };
      if (isLast) worker.log.error(facts, "job given up");
      else worker.log.warn(facts, "job failed; it is tried again");
      return { id, status: "failed", output: { error: (error as Error).message } };
    }
  };
  const attemptBatch = async ({ run }: JobBatch, jobs: Job<object>[]): Promise<JobResult[] | null> => {
    try {
      const data = jobs.map((one) => one.data);
      const signal = AbortSignal.any(jobs.map((one) => one.signal));
      await inSpan(`job ${job.name}`, {}, () => run(data, signal));
      return jobs.map(({ id }) => ({ id, status: "completed" }));
    } catch (error) {
      worker.log.warn({ job: job.name, jobs: jobs.length, err: error }, "batch failed; each job runs alone");
      return null;
    }
  };
  const attemptEach = async (jobs: Job<object>[]): Promise<JobResult[]> => {
    const results: JobResult[] = [];
    for (const some of inBatches(jobs, AT_ONCE)) results.push(...(await Promise.all(some.map(attempt))));
    return results;
  };
  const options = { ...WORK_OPTIONS, batchSize: job.batch?.size ?? AT_ONCE };
  return boss.work(job.name, options, async (jobs: Job<object>[]) => {
    const together = job.batch && jobs.length > 1 ? await attemptBatch(job.batch, jobs) : null;
    const results = together ?? (await attemptEach(jobs));
    const succeeded = results.filter(({ status }) => status === "completed").length;
    await recordRuns(worker, job.name, { succeeded, failed: results.length - succeeded });
    return results;
  });
}

const WORK_OPTIONS = {
  burstWhenBatchFull: true,
  pollingIntervalSeconds: FALLBACK_POLL_SECONDS,
  perJobResults: true,
} as const;
