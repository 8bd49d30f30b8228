import type { Job, Queue } from "@stoa/contract";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { toId, toUuid } from "../../core/ids.ts";
import { maskAddresses, maskSecrets } from "../../core/mask.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import { mapPage, offsetOf, type Page, type Paging } from "../../platform/db/paging.ts";
import type { JobStatus } from "../../platform/jobs/job-queue.ts";
import { hasFailed, isLate } from "../../platform/jobs/job-stats.ts";
import type { AdminActor } from "../admin/admin-action.ts";
import {
  hastenJob,
  isJobRunning,
  type JobRow,
  type JobState,
  listJobRows,
  listQueueRows,
  type QueueRow,
  takeFailedJobs,
} from "./job-queries.ts";
import { nextRunOf } from "./next-run.ts";

/** Each is requested by a statement of its own. */
const MAX_RETRIED = 2_000;
const MAX_ERROR_LENGTH = 500;
/** Masking takes quadratic time on a long text without blanks. */
const MAX_MASKED_LENGTH = 4_000;
const ALL_STATES: JobState[] = ["waiting", "running", "failed"];

const isoOf = (at: Date | null) => at?.toISOString() ?? null;

export const describeJobError = (error: string | null): string | null =>
  error === null
    ? null
    : maskAddresses(maskSecrets(error.slice(0, MAX_MASKED_LENGTH))).slice(0, MAX_ERROR_LENGTH);

export async function listQueues(ctx: Context, paging: Paging): Promise<Page<Queue>> {
  const [statuses, rows] = [await ctx.jobs.readStatus(), await listQueueRows(ctx.db)];
  const byName = new Map(rows.map((row) => [row.name, row]));
  const start = offsetOf(paging);
  const items = statuses.slice(start, start + paging.limit);
  return { items: items.map((one) => toQueue(ctx, one, byName.get(one.name))), total: statuses.length };
}

function toQueue(ctx: Context, status: JobStatus, row: QueueRow | undefined): Queue {
  const cron = row?.cron ?? null;
  return {
    name: status.name,
    schedule: cron,
    ...{ waiting: status.waiting, running: row?.running ?? 0, failed: status.givenUp },
    ...{ runs: status.runs, failures: status.failures },
    lastSuccessAt: isoOf(status.lastSuccessAt),
    lastFailureAt: isoOf(status.lastFailureAt),
    lastError: hasFailed(status) ? describeJobError(row?.lastError ?? null) : null,
    nextRunAt: cron === null ? null : isoOf(nextRunOf(cron, ctx.now())),
    isLate: isLate(status, ctx.now()),
  };
}

interface JobsQuery extends Paging {
  state?: JobState | undefined;
  queue?: string | undefined;
}

export async function listJobs(ctx: Context, { state, ...query }: JobsQuery): Promise<Page<Job>> {
  return mapPage(await listJobRows(ctx.db, { ...query, states: state ? [state] : ALL_STATES }), toJob);
}

const toJob = (row: JobRow): Job => ({
  id: toId("job", row.id),
  ...{ queue: row.queue, state: row.state, attempts: row.attempts },
  error: describeJobError(row.error),
  createdAt: row.createdAt.toISOString(),
  nextAttemptAt: isoOf(row.nextAttemptAt),
  startedAt: isoOf(row.startedAt),
  failedAt: isoOf(row.failedAt),
});

export async function retryJob(ctx: Context, actor: AdminActor, jobId: string) {
  const id = toUuid("job", jobId);
  if (id === null) throw new ApiError("JOB_NOT_FOUND");
  await ctx.db.transaction().execute(async (tx) => {
    const [failed] = await takeFailedJobs(tx, { id, limit: 1 });
    if (failed) await requestAgain(ctx, tx, failed);
    else if (!(await hastenJob(tx, id))) throw await whyNotRetried(tx, id);
    await audit(ctx, tx, actor, { type: "job", id: jobId });
    await ctx.idempotencyKey?.bind(tx, "1");
  });
  return { retried: 1 };
}

const whyNotRetried = async (tx: Tx, id: string) =>
  (await isJobRunning(tx, id))
    ? new ApiError("INVALID_STATE", "The job is running now.", { current: "running" })
    : new ApiError("JOB_NOT_FOUND");

export async function retryFailedJobs(ctx: Context, actor: AdminActor, queue: string | undefined) {
  return ctx.db.transaction().execute(async (tx) => {
    const jobs = await takeFailedJobs(tx, {
      // Jobs of another version stay, and do not keep the others from being retried.
      queues: ctx.jobs.names.filter((name) => queue === undefined || name === queue),
      limit: MAX_RETRIED,
    });
    for (const job of jobs) await requestAgain(ctx, tx, job);
    if (jobs.length > 0) await audit(ctx, tx, actor, null, { retried: jobs.length, queue: queue ?? null });
    await ctx.idempotencyKey?.bind(tx, String(jobs.length));
    return { retried: jobs.length };
  });
}

/** Beside its schedule. The queue refuses a second job while one waits or runs. */
export async function runScheduledJob(ctx: Context, { caller, source }: AdminActor, name: string) {
  if (!(await ctx.jobs.findSchedule(name))) throw new ApiError("QUEUE_NOT_FOUND");
  return ctx.db.transaction().execute(async (tx) => {
    const id = await ctx.jobs.sendScheduled(tx, name);
    if (id === null) throw new ApiError("INVALID_STATE", "This job waits or runs already.");
    const jobId = toId("job", id);
    await recordAudit(ctx, tx, {
      ...{ actorId: caller.userId, action: "job.started", source, details: { queue: name } },
      target: { type: "job", id: jobId },
    });
    await ctx.idempotencyKey?.bind(tx, id);
    return { jobId };
  });
}

const requestAgain = (ctx: Context, tx: Tx, { queue, data }: { queue: string; data: object }) =>
  ctx.jobs.send(tx, queue, data).catch((error) => {
    if (!(error instanceof TypeError)) throw error;
    throw new ApiError("INVALID_STATE", `This version of the service has no job ${queue}.`);
  });

const audit = (
  ctx: Context,
  tx: Tx,
  { caller, source }: AdminActor,
  target: { type: string; id: string } | null,
  details = {},
) =>
  recordAudit(ctx, tx, {
    ...{ actorId: caller.userId, action: "job.retried", source, details },
    ...(target && { target }),
  });
