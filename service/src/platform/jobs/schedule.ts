import type { Context } from "../../core/context.ts";
import type { Tx } from "../db/database.ts";
import {
  beginScheduledRun,
  endScheduledRun,
  findLastScheduledRun,
  lockScheduledRun,
} from "./schedule-queries.ts";

/** Work at scheduled times, of which none may be missed or run twice. */
export interface Schedule {
  name: string;
  /** The first scheduled time after a given time. */
  next(after: Date): Date;
  /**
   * Runs one scheduled time and writes only through `piece`. After a kill it runs again and must detect which pieces are
   * done. Returning ends the run.
   */
  run(slot: Date, piece: RunTransaction): Promise<void>;
}

/** Runs a part of a scheduled run in its own transaction. Throws ScheduledRunEnded when another worker has ended the run. */
export type RunTransaction = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>;

/** Another worker has finished this scheduled run. */
export class ScheduledRunEnded extends Error {
  constructor(job: string, slot: Date) {
    super(`${job} has ended the slot ${slot.toISOString()}`);
    this.name = "SlotEnded";
  }
}

/**
 * Runs every scheduled time since the last one, the oldest first, also after days of downtime. Workers may run in
 * parallel: a run ends once, and nothing is written in it afterwards. Another worker continues the run of a killed one.
 */
export async function runSchedule(ctx: Context, job: Schedule): Promise<void> {
  const last = await findLastScheduledRun(ctx.db, job.name, ctx.now());
  for (let slot = job.next(last); slot <= ctx.now(); slot = job.next(slot)) await runOnce(ctx, job, slot);
}

async function runOnce(ctx: Context, job: Schedule, slot: Date): Promise<void> {
  await beginScheduledRun(ctx.db, job.name, slot);
  try {
    await job.run(slot, transactionOf(ctx, job.name, slot));
    await endScheduledRun(ctx.db, job.name, slot, ctx.now());
  } catch (error) {
    if (!(error instanceof ScheduledRunEnded)) throw error;
  }
}

/** Locks the run's row in shared mode for each piece, so that the run ends after it, or the piece does not start. */
const transactionOf =
  (ctx: Context, job: string, slot: Date): RunTransaction =>
  (work) =>
    ctx.db.transaction().execute(async (tx) => {
      if (!(await lockScheduledRun(tx, job, slot))) throw new ScheduledRunEnded(job, slot);
      return work(tx);
    });
