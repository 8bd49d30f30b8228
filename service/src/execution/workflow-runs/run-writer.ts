import type { Context } from "../../core/context.ts";
import { failPoint } from "../../core/fail-points.ts";
import { retryWhileAway, type Tx } from "../../platform/db/database.ts";
import {
  askToCancel,
  movingWorkflowExecution,
  type WorkflowMove,
} from "../executions/workflow-executions.ts";
import type { OpenCall } from "../provider-keys/provider-calls.ts";
import { tellCaller } from "./callbacks.ts";
import type { KeyedCalls } from "./pending-calls.ts";
import type { Progress } from "./progress.ts";
import type { Ending } from "./run-end.ts";
import {
  type Checkpoint,
  type Claimed,
  type EventRow,
  notifyRun,
  type RunRow,
  tellParent,
  type WrittenCheckpoint,
  writeCheckpoint,
} from "./run-queries.ts";
import { noSpent, type StepError, sumOf } from "./run-state.ts";
import { type CalledResult, type RunStart, sealResult } from "./sealed-texts.ts";
import { toStepRow } from "./step-rows.ts";
import { tellEnd } from "./trace.ts";

export type Written = WrittenCheckpoint["written"];

const OPEN = ["queued", "running", "waiting"] as const;

type Told = Pick<EventRow, "type" | "data">;

interface Stand {
  dueAt: Date;
  keepsLease: boolean;
  status: "running" | "waiting";
  opens: readonly OpenCall[];
}

/** A run comes to another state: what is told of that, and what is done in the same transaction beside its row. */
interface Turn {
  event: { type: string; error?: StepError };
  move: WorkflowMove;
  also: ((tx: Tx) => Promise<void>) | null;
}

/** What is written down of a run by whoever drives it: all of a moment at once, or nothing. */
export class RunRecord {
  readonly #ctx: Context;
  readonly #claimed: Claimed;
  readonly #calls: KeyedCalls;
  readonly #row: RunRow;
  readonly #start: RunStart | null;
  /** How much of what it was told has been heard. */
  signals = -1;

  /** `start` is null where it is forgotten. */
  constructor(ctx: Context, claimed: Claimed, calls: KeyedCalls, row: RunRow, start: RunStart | null) {
    this.#ctx = ctx;
    this.#calls = calls;
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
    const waitingFor = status === "waiting" ? approvalsIn(progress) : [];
    const written = await this.#checkpoint(
      progress,
      stand,
      status === before
        ? null
        : {
            event: { type: before === "queued" ? "execution.started" : `execution.${status}` },
            move: { from: OPEN, to: status },
            also: waitingFor.length > 0 ? this.#tellingCaller(waitingFor) : null,
          },
    );
    if (written === "written") this.#row.status = status;
    return written;
  }

  /** That and how it has ended, with all that follows from it. */
  async end(progress: Progress | null, ending: Ending): Promise<Written> {
    if (progress) for (const run of progress.state.all()) progress.cancel(run);
    failPoint(this.#ctx, "workflow ends");
    const written = await this.#checkpoint(
      progress,
      { dueAt: null, keepsLease: false, opens: [] },
      this.#toTurn(progress, ending),
    );
    if (written === "written") tellEnd(this.#ctx, ending, this.#row.createdAt);
    return written;
  }

  #toTurn(progress: Progress | null, ending: Ending): Turn {
    const ctx = this.#ctx;
    const { parentId, createdAt } = this.#row;
    const spent = progress ? sumOf(progress.state.all()) : noSpent;
    const output = ending.status === "completed" ? ending.output : null;
    const error = ending.status === "completed" ? null : ending.error;
    const told = ending.status === "canceled" ? { code: "CANCELED", message: "It was canceled." } : error;
    const tellCaller = this.#tellingCaller([]);
    return {
      event: { type: `execution.${ending.status}`, ...(error && { error }) },
      move: {
        from: OPEN,
        to: ending.status,
        ...(this.#start && { texts: { variables: this.#start.input, output } }),
        ...(error && { error }),
        spent,
        durationMs: ctx.now().getTime() - createdAt.getTime(),
      },
      also: parentId
        ? async (tx) => {
            await this.#tellParent(tx, parentId, { output, error: told, spent });
            await tellCaller?.(tx);
          }
        : tellCaller,
    };
  }

  async #tellParent(tx: Tx, parentId: string, result: CalledResult): Promise<void> {
    const sealed = sealResult(this.#ctx, this.#claimed, result);
    await tellParent(tx, this.#claimed.id, sealed, this.#ctx.now());
    await notifyRun(tx, parentId);
  }

  /** null: nobody is called back. */
  #tellingCaller(waitingFor: string[]): Turn["also"] {
    const callbackId = this.#start?.callbackId ?? null;
    if (callbackId === null) return null;
    return (tx) => tellCaller(this.#ctx, tx, this.#claimed, callbackId, waitingFor);
  }

  async #checkpoint(
    progress: Progress | null,
    { opens, ...stand }: Pick<Checkpoint, "dueAt" | "keepsLease"> & Pick<Stand, "opens">,
    turn: Turn | null,
  ): Promise<Written> {
    const taken = progress?.take() ?? { steps: [], events: [], abandoned: [] };
    const events = this.#toRows(inOrder(taken.events, turn?.event ?? null));
    const lease = { ...this.#claimed, signals: this.signals };
    const checkpoint = {
      ...stand,
      move: turn && movingWorkflowExecution(this.#ctx, this.#claimed, turn.move),
      tellsEnd: stand.dueAt === null,
      steps: taken.steps.map((step) => toStepRow(this.#ctx, this.#claimed, progress!.state, step)),
      events,
    };
    const calls = this.#calls.take(opens);
    const { written, reserved } = await this.#writeAll(
      lease,
      { ...checkpoint, calls },
      turn?.also,
      taken.abandoned,
    ).catch((error) => {
      this.#calls.putBack(calls);
      throw error;
    });
    if (written === "written") {
      this.#row.lastSeq += events.length;
      this.#calls.noteWritten(calls, reserved);
    } else {
      progress?.putBack(taken);
      this.#calls.putBack(calls);
    }
    return written;
  }

  /** In a transaction where there is more than the checkpoint. */
  #writeAll(
    lease: Parameters<typeof writeCheckpoint>[1],
    checkpoint: Checkpoint,
    also: Turn["also"] | undefined,
    abandoned: string[],
  ): Promise<WrittenCheckpoint> {
    const { db, shutdown } = this.#ctx;
    const write = () =>
      !also && abandoned.length === 0
        ? writeCheckpoint(db, lease, checkpoint)
        : db.transaction().execute(async (tx) => {
            const result = await writeCheckpoint(tx, lease, checkpoint);
            if (result.written !== "written") return result;
            await also?.(tx);
            await askToCancel(tx, abandoned, this.#ctx.now());
            return result;
          });
    // What providers have answered is held meanwhile: somebody was billed for it.
    return retryWhileAway(shutdown, () => unlessDeadlocked(write));
  }

  #toRows(events: Told[]): EventRow[] {
    const createdAt = this.#ctx.now();
    return events.map(({ type, data }, at) => ({ seq: this.#row.lastSeq + at + 1, type, data, createdAt }));
  }
}

const DEADLOCK = "40P01";

/** A run that ends tells whoever called it, and may meet that one telling it to end: one of them looks again. */
async function unlessDeadlocked(write: () => Promise<WrittenCheckpoint>): Promise<WrittenCheckpoint> {
  try {
    return await write();
  } catch (error) {
    if ((error as { code?: string }).code === DEADLOCK) return { written: "signaled", reserved: {} };
    throw error;
  }
}

/** A run that starts or goes on does so before its steps; it waits or ends after them. */
function inOrder(steps: Told[], event: Turn["event"] | null): Told[] {
  if (!event) return steps;
  const isFirst = event.type === "execution.started" || event.type === "execution.running";
  return isFirst ? [toEvent(event), ...steps] : [...steps, toEvent(event)];
}

const toEvent = ({ type, error }: Turn["event"]) => ({
  type,
  data: error ? { error } : {},
});

const approvalsIn = ({ state }: Progress): string[] =>
  [...state.all()].flatMap((run) =>
    run.status === "waiting" && state.work(run).type === "approval" ? [run.stepId] : [],
  );
