import { askToCancel, moveWorkflowExecution } from "../ai/workflow-executions.ts";
import type { Context } from "../context.ts";
import type { Tx } from "../db/database.ts";
import { failPoint } from "../fail-points.ts";
import { tellCaller } from "./callbacks.ts";
import type { Ending } from "./ending.ts";
import type { Progress } from "./progress.ts";
import { toStepRow } from "./records.ts";
import {
  type Checkpoint,
  type Claimed,
  type EventRow,
  notifyRun,
  type RunRow,
  tellParent,
  writeCheckpoint,
} from "./run-queries.ts";
import { type RunStart, sealResult } from "./start-text.ts";
import { noSpent, type StepError, sumOf } from "./state.ts";
import { tellEnd } from "./trace.ts";

export type Written = "written" | "signaled" | "lost";

const OPEN = ["queued", "running", "waiting"] as const;

type Told = Pick<EventRow, "type" | "data">;

interface Stand {
  dueAt: Date;
  keepsLease: boolean;
  status: "running" | "waiting";
}

/** What is written down of a run by whoever drives it: all of a moment at once, or nothing. */
export class RunRecord {
  readonly #ctx: Context;
  readonly #claimed: Claimed;
  readonly #row: RunRow;
  readonly #start: RunStart | null;
  /** How much of what it was told has been heard. */
  signals = -1;

  /** `start` is null where it is forgotten. */
  constructor(ctx: Context, claimed: Claimed, row: RunRow, start: RunStart | null) {
    this.#ctx = ctx;
    this.#claimed = claimed;
    this.#row = row;
    this.#start = start;
  }

  /** As it was last written down. */
  get status(): RunRow["status"] {
    return this.#row.status;
  }

  /** How far it is, for whoever may have to go on from there. */
  async write(progress: Progress, { status, ...stand }: Stand): Promise<Written> {
    const before = this.#row.status;
    const move =
      status === before ? null : { type: before === "queued" ? "execution.started" : `execution.${status}` };
    const written = await this.#checkpoint(progress, stand, move, async (tx) => {
      await moveWorkflowExecution(this.#ctx, tx, this.#claimed, { from: OPEN, to: status });
      const waitingFor = status === "waiting" ? approvalsIn(progress) : [];
      if (waitingFor.length > 0) await this.#tellCaller(tx, waitingFor);
    });
    if (written === "written") this.#row.status = status;
    return written;
  }

  /** That and how it has ended, with all that follows from it. */
  async end(progress: Progress | null, ending: Ending): Promise<Written> {
    if (progress) for (const run of progress.state.all()) progress.cancel(run);
    const event = {
      type: `execution.${ending.status}`,
      ...("error" in ending && ending.error && { error: ending.error }),
    };
    failPoint(this.#ctx, "workflow ends");
    const written = await this.#checkpoint(progress, { dueAt: null, keepsLease: false }, event, (tx) =>
      this.#settle(tx, progress, ending),
    );
    if (written === "written") tellEnd(this.#ctx, ending, this.#row.createdAt);
    return written;
  }

  async #settle(tx: Tx, progress: Progress | null, ending: Ending): Promise<void> {
    const ctx = this.#ctx;
    const { id } = this.#claimed;
    const spent = progress ? sumOf(progress.state.all()) : noSpent;
    const output = ending.status === "completed" ? ending.output : null;
    const error = ending.status === "completed" ? null : ending.error;
    await moveWorkflowExecution(ctx, tx, this.#claimed, {
      from: OPEN,
      to: ending.status,
      ...(this.#start && { texts: { variables: this.#start.input, output } }),
      ...(error && { error }),
      spent,
      durationMs: ctx.now().getTime() - this.#row.createdAt.getTime(),
    });
    if (this.#row.parentId) {
      const told = ending.status === "canceled" ? { code: "CANCELED", message: "It was canceled." } : error;
      await tellParent(tx, id, sealResult(ctx, this.#claimed, { output, error: told, spent }), ctx.now());
      await notifyRun(tx, this.#row.parentId);
    }
    await this.#tellCaller(tx, []);
    await notifyRun(tx, id);
  }

  #tellCaller(tx: Tx, waitingFor: string[]): Promise<void> {
    return tellCaller(this.#ctx, tx, this.#claimed, this.#start?.callbackId ?? null, waitingFor);
  }

  /** `also` is done in the transaction in which it is written. */
  async #checkpoint(
    progress: Progress | null,
    stand: Pick<Checkpoint, "dueAt" | "keepsLease">,
    event: { type: string; error?: StepError } | null,
    also: (tx: Tx) => Promise<void>,
  ): Promise<Written> {
    const taken = progress?.take() ?? { steps: [], events: [], abandoned: [] };
    const events = this.#toRows(inOrder(taken.events, event));
    const steps = taken.steps.map((step) => toStepRow(this.#ctx, this.#claimed, progress!.state, step));
    const lease = { ...this.#claimed, signals: this.signals };
    const checkpoint = { ...stand, movesHistory: event !== null, steps, events };
    const { db } = this.#ctx;
    const isAlone = event === null && taken.abandoned.length === 0;
    const written = isAlone
      ? await writeCheckpoint(db, lease, checkpoint)
      : await unlessDeadlocked(() =>
          db.transaction().execute(async (tx) => {
            const result = await writeCheckpoint(tx, lease, checkpoint);
            if (result !== "written") return result;
            if (event) await also(tx);
            await askToCancel(tx, taken.abandoned, this.#ctx.now());
            return result;
          }),
        );
    if (written === "written") this.#row.lastSeq += events.length;
    else progress?.putBack(taken);
    return written;
  }

  #toRows(events: Told[]): EventRow[] {
    const createdAt = this.#ctx.now();
    return events.map(({ type, data }, at) => ({ seq: this.#row.lastSeq + at + 1, type, data, createdAt }));
  }
}

const DEADLOCK = "40P01";

/** A run that ends tells whoever called it, and may meet that one telling it to end: one of them looks again. */
async function unlessDeadlocked(write: () => Promise<Written>): Promise<Written> {
  try {
    return await write();
  } catch (error) {
    if ((error as { code?: string }).code === DEADLOCK) return "signaled";
    throw error;
  }
}

/** A run that starts or goes on does so before its steps; it waits or ends after them. */
function inOrder(steps: Told[], event: { type: string; error?: StepError } | null): Told[] {
  if (!event) return steps;
  const isFirst = event.type === "execution.started" || event.type === "execution.running";
  return isFirst ? [toEvent(event), ...steps] : [...steps, toEvent(event)];
}

const toEvent = ({ type, error }: { type: string; error?: StepError }) => ({
  type,
  data: error ? { error } : {},
});

const approvalsIn = ({ state }: Progress): string[] =>
  [...state.all()].flatMap((run) =>
    run.status === "waiting" && state.work(run).type === "approval" ? [run.stepId] : [],
  );
