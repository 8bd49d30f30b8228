import type { Context } from "../../core/context.ts";
import { maskSecrets } from "../../core/mask.ts";
import { required } from "../../core/required.ts";
import { recordAudit } from "../../platform/audit/audit.ts";
import type { Tx } from "../../platform/db/database.ts";
import type { AdminActor } from "../admin/admin-action.ts";
import {
  endTask,
  failAbandonedTasks,
  findRunningTask,
  findTask,
  insertTask,
  type TaskRow,
  updateTaskProgress,
} from "./task-queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    operatorTasks: OperatorTasks;
  }
}

export interface TaskProgress {
  step: string;
  done: number;
  /** 0: not known. */
  total: number;
}

/** Throws when the process must end. */
export type ReportProgress = (progress: TaskProgress) => void;

export interface TaskDefinition {
  kind: TaskRow["kind"];
  /** The action in the audit log. */
  action: string;
  firstStep: string;
  /** `signal` aborts when the process must end: a step may take longer than that may wait. */
  run(task: { id: string; startedAt: Date }, report: ReportProgress, signal: AbortSignal): Promise<object>;
}

const WRITE_INTERVAL_MS = 500;
const RENEW_INTERVAL_MS = 10_000;
/** A task that was not renewed for this long has lost its process. */
const ABANDONED_AFTER_MS = 60_000;
export const ABANDONED = "The process that ran it has ended. Start it again.";

/** Of processes that were killed. */
export const failAbandoned = (tx: Tx, now: Date) =>
  failAbandonedTasks(tx, {
    before: new Date(now.getTime() - ABANDONED_AFTER_MS),
    now,
    error: ABANDONED,
  });

/** The tasks that this process runs for administrators. */
export class OperatorTasks {
  readonly #running = new Map<string, Promise<void>>();
  readonly #closing = new AbortController();

  /** Starts the task, unless one of its kind runs: then returns that one. */
  async start(ctx: Context, { caller, source }: AdminActor, task: TaskDefinition): Promise<TaskRow> {
    const started = await ctx.db.transaction().execute(async (tx) => {
      const now = ctx.now();
      await failAbandoned(tx, now);
      const row = await insertTask(tx, { id: ctx.newId(), kind: task.kind, step: task.firstStep, now });
      if (!row) return row;
      await recordAudit(ctx, tx, { actorId: caller.userId, action: task.action, source });
      await ctx.idempotencyKey?.bind(tx, row.id);
      return row;
    });
    if (!started) return required(await findRunningTask(ctx.db, task.kind), "the task that runs");
    const done = this.#run(ctx, task, started).finally(() => this.#running.delete(started.id));
    this.#running.set(started.id, done);
    return started;
  }

  /** Ends what runs, at the latest when it reports its progress. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.waitUntilIdle();
  }

  async waitUntilIdle(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #run(ctx: Context, task: TaskDefinition, { id, startedAt }: TaskRow): Promise<void> {
    const progress = new ProgressWriter(ctx, id);
    try {
      const report: ReportProgress = (now) => {
        if (this.#closing.signal.aborted) throw new Error(ABANDONED);
        progress.set(now);
      };
      const result = await task.run({ id, startedAt }, report, this.#closing.signal);
      await progress.end();
      await endTask(ctx.db, id, { result, error: null, now: ctx.now() });
    } catch (error) {
      ctx.log.error({ err: error, task: task.kind }, "a task of an administrator failed");
      await progress.end();
      await endTask(ctx.db, id, {
        result: {},
        error: this.#closing.signal.aborted ? ABANDONED : maskSecrets((error as Error).message),
        now: ctx.now(),
      }).catch((err) => ctx.log.error({ err }, "the end of a task was not stored"));
    }
  }
}

/** Stores progress at intervals: a backup reports it for every part of a table. */
class ProgressWriter {
  readonly #ctx: Context;
  readonly #id: string;
  readonly #timer: NodeJS.Timeout;
  #next: TaskProgress | null = null;
  #writtenAt = performance.now();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(ctx: Context, id: string) {
    this.#ctx = ctx;
    this.#id = id;
    this.#timer = setInterval(() => this.#write(), WRITE_INTERVAL_MS);
  }

  set(progress: TaskProgress): void {
    this.#next = progress;
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    this.#write();
    await this.#writing;
  }

  #write(): void {
    if (!this.#next && performance.now() - this.#writtenAt < RENEW_INTERVAL_MS) return;
    const progress = this.#next;
    this.#next = null;
    this.#writtenAt = performance.now();
    this.#writing = this.#writing
      .then(() => updateTaskProgress(this.#ctx.db, this.#id, progress, this.#ctx.now()))
      .catch((error) => this.#ctx.log.warn({ err: error }, "the progress of a task was not stored"));
  }
}

export async function readTask(
  ctx: Context,
  kind: TaskRow["kind"],
  id: string | null,
): Promise<TaskRow | null> {
  const row = id === null ? undefined : await findTask(ctx.db, kind, id);
  return row ?? null;
}

type Shown = Pick<TaskRow, "startedAt" | "renewedAt" | "endedAt" | "error" | "step" | "done" | "total">;

/** The part that all kinds show. A task whose process is gone has failed, also before the next start stores that. */
export function toTaskState(ctx: Context, row: Shown) {
  const isAbandoned =
    row.endedAt === null && row.renewedAt.getTime() < ctx.now().getTime() - ABANDONED_AFTER_MS;
  const error = isAbandoned ? ABANDONED : row.error;
  const endedAt = isAbandoned ? row.renewedAt : row.endedAt;
  return {
    status: statusOf(error, endedAt),
    progress: { step: row.step, done: row.done, total: row.total },
    error,
    startedAt: row.startedAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  };
}

function statusOf(error: string | null, endedAt: Date | null): "running" | "succeeded" | "failed" {
  if (error !== null) return "failed";
  return endedAt === null ? "running" : "succeeded";
}
