import type { Context } from "../../core/context.ts";
import type { Tx } from "../db/database.ts";
import {
  beginScheduledRun,
  endScheduledRun,
  findLastScheduledRun,
  lockScheduledRun,
} from "./schedule-queries.ts";

/** What is done by a schedule of which no slot may be missed, and none carried out twice. */
export interface Schedule {
  name: string;
  /** The first slot of the schedule after a moment. */
  next(after: Date): Date;
  /**
   * Carries a slot out, all of what it writes by `piece`. Begun again after a kill, it must find for itself which of its pieces are
   * done; it ends the slot by returning.
   */
  run(slot: Date, piece: RunTransaction): Promise<void>;
}

/** Runs a part of a slot in a transaction of its own; throws a SlotEnded when another worker has ended the slot. */
export type RunTransaction = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>;

/** Another worker was done with the slot while this one was still at it. */
export class ScheduledRunEnded extends Error {
  constructor(job: string, slot: Date) {
    super(`${job} has ended the slot ${slot.toISOString()}`);
    this.name = "SlotEnded";
  }
}

/**
 * Carries out every slot that came due since the last one, the oldest first, also after days of standstill. Any number of workers may
 * do so at once: a slot is ended once, and nothing is written in it afterwards. Whoever is killed leaves the slot to the next.
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

/** The slot's row is shared while a piece is written, so that the slot ends after it, or the piece is not begun. */
const transactionOf =
  (ctx: Context, job: string, slot: Date): RunTransaction =>
  (work) =>
    ctx.db.transaction().execute(async (tx) => {
      if (!(await lockScheduledRun(tx, job, slot))) throw new ScheduledRunEnded(job, slot);
      return work(tx);
    });
