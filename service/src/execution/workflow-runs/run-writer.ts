import type { Context } from "../../core/context.ts";
import { failPoint } from "../../core/fail-points.ts";
import { retryWhileUnavailable, type Tx } from "../../platform/db/database.ts";
import { DEADLOCK_DETECTED, hasSqlState } from "../../platform/db/sql-state.ts";
import { requestCancelByIds } from "../executions/queries.ts";
import { toWorkflowChange, type WorkflowTransition } from "../executions/workflow-executions.ts";
import { hasLimits, type OpenCall } from "../provider-keys/provider-calls.ts";
import { sendRunCallback } from "./callbacks.ts";
import { LONG_RUN_MS, notifyOwner } from "./owner-notifications.ts";
import type { PendingCalls } from "./pending-calls.ts";
import type { Progress } from "./progress.ts";
import type { EndedRow } from "./queries.ts";
import { toWorkflowExecution } from "./read-execution.ts";
import type { RunEnd } from "./run-end.ts";
import type { RunInsertion } from "./run-insertion.ts";
import {
  type Checkpoint,
  type CheckpointResult,
  type ClaimedRun,
  type NewEventRow,
  notifyRun,
  type RunLease,
  type RunRow,
  reportToParent,
  writeCheckpoint,
} from "./run-queries.ts";
import { NO_USAGE, type StepError, type StepRun, sumUsage } from "./run-state.ts";
import { type ChildResult, type RunInput, sealResult } from "./sealed-texts.ts";
import { toStepRow } from "./step-rows.ts";
import { traceRunEnd } from "./trace.ts";

export type CheckpointStatus = CheckpointResult["status"];

type NewEvent = Pick<NewEventRow, "type" | "data">;

interface RunPosition {
  dueAt: Date;
  keepsLease: boolean;
  renewedUntil: Date | null;
  status: "running" | "waiting";
  opens: readonly OpenCall[];
}

/** A change of the run's status: its event, the change of the row, and other writes of the same transaction. */
interface Transition {
  event: { type: string; error?: StepError };
  move: WorkflowTransition;
  sideWrites: ((tx: Tx) => Promise<void>) | null;
}

/** Writes the checkpoints of one driver, each as a whole or not at all. */
export class RunWriter {
  readonly #ctx: Context;
  readonly #claimed: ClaimedRun;
  readonly #calls: PendingCalls;
  readonly #row: RunRow;
  readonly #start: RunInput | null;
  /** null: the run is inserted. */
  #insertion: RunInsertion | null;
  /** Number of signals that were read. */
  signals = -1;
  /** The end of the run is written. */
  hasEnded = false;

  /** `start` is null when the input of the run was erased. */
  constructor(
    ctx: Context,
    claimed: ClaimedRun,
    calls: PendingCalls,
    row: RunRow,
    { start, insertion }: { start: RunInput | null; insertion: RunInsertion | null },
  ) {
    this.#ctx = ctx;
    this.#calls = calls;
    this.#claimed = claimed;
    this.#row = row;
    this.#start = start;
    this.#insertion = insertion;
  }

  get isInserted(): boolean {
    return this.#insertion === null;
  }

  get isOwnerBanned(): boolean {
    return this.#row.isOwnerBanned === true;
  }

  /** The status of the last checkpoint. */
  get status(): RunRow["status"] {
    return this.#row.status;
  }

  /** Writes the progress, from which another worker can continue. */
  async write(progress: Progress, { status, ...position }: RunPosition): Promise<CheckpointStatus> {
    if (this.#insertion && position.keepsLease && !position.opens.some(({ key }) => hasLimits(key)))
      return this.#insertWithSteps(this.#insertion, progress, position.opens);
    if (!(await this.insert())) return "lost";
    const before = this.#row.status;
    const waitingFor = status === "waiting" ? listOpenApprovals(progress) : [];
    const { status: written } = await this.#checkpoint(
      progress,
      position,
      status === before
        ? null
        : {
            event: { type: before === "queued" ? "execution.started" : `execution.${status}` },
            move: { to: status },
            sideWrites: waitingFor.length > 0 ? this.#toWaitingWrite(waitingFor) : null,
          },
    );
    if (written === "written") this.#row.status = status;
    return written;
  }

  /** Inserts the run, as queued. False: the driver must leave it. */
  async insert(): Promise<boolean> {
    if (!this.#insertion) return true;
    if (!(await this.#insertion.write(null))) return false;
    this.#insertion = null;
    return true;
  }

  /** The first checkpoint, in the statement that inserts the run. */
  async #insertWithSteps(
    insertion: RunInsertion,
    progress: Progress,
    opened: readonly OpenCall[],
  ): Promise<CheckpointStatus> {
    const { steps, events } = progress.drain();
    const rows = this.#toRows([toEvent({ type: "execution.started" }), ...events]);
    const first = { steps: this.#toStepRows(progress, steps), events: rows, opened };
    if (!(await insertion.write(first))) return "lost";
    this.#insertion = null;
    this.#row.status = "running";
    this.#row.lastSeq += rows.length;
    return "written";
  }

  #toStepRows = ({ state }: Progress, steps: readonly StepRun[]) =>
    steps.map((step) => toStepRow(this.#ctx, this.#claimed, state, step));

  /** Writes the progress and the end of the run, with everything that follows from it. */
  async end(progress: Progress | null, runEnd: RunEnd): Promise<CheckpointStatus> {
    if (!(await this.insert())) return "lost";
    if (progress) for (const run of progress.state.all()) progress.cancel(run);
    failPoint(this.#ctx, "workflow ends");
    const { status: written, endedRow } = await this.#checkpoint(
      progress,
      { dueAt: null, keepsLease: false, renewedUntil: null, opens: [] },
      this.#toTransition(progress, runEnd),
    );
    if (written === "written") {
      this.hasEnded = true;
      traceRunEnd(this.#ctx, runEnd, this.#row.createdAt);
      const output = runEnd.status === "completed" ? runEnd.output : null;
      this.#ctx.runNotifications.onEnded(
        this.#claimed.id,
        endedRow && toWorkflowExecution(this.#ctx, this.#claimed.id, toExecutionRow(endedRow), output),
      );
    }
    return written;
  }

  #toTransition(progress: Progress | null, runEnd: RunEnd): Transition {
    const ctx = this.#ctx;
    const { parentId, createdAt } = this.#row;
    const usage = progress ? sumUsage(progress.state.all()) : NO_USAGE;
    const output = runEnd.status === "completed" ? runEnd.output : null;
    const error = runEnd.status === "completed" ? null : runEnd.error;
    const parentError =
      runEnd.status === "canceled" ? { code: "CANCELED", message: "It was canceled." } : error;
    const writeCallback = this.#toCallbackWrite([]);
    const isLong = ctx.now().getTime() - createdAt.getTime() >= LONG_RUN_MS;
    const endJob = this.#start?.endJob;
    const writeEnd = endJob
      ? (tx: Tx) => ctx.jobs.send(tx, endJob.name, endJob.data)
      : isLong && runEnd.status !== "canceled"
        ? this.#toEndWrite(runEnd, writeCallback)
        : writeCallback;
    return {
      event: { type: `execution.${runEnd.status}`, ...(error && { error }) },
      move: {
        to: runEnd.status,
        ...(this.#start && { texts: { variables: this.#start.input, output } }),
        ...(error && { error }),
        usage,
        durationMs: ctx.now().getTime() - createdAt.getTime(),
      },
      sideWrites: parentId
        ? async (tx) => {
            await this.#reportToParent(tx, parentId, { output, error: parentError, usage });
            await writeCallback?.(tx);
          }
        : writeEnd,
    };
  }

  /** Nobody waits at the screen for a long run. */
  #toEndWrite(
    runEnd: Exclude<RunEnd, { status: "canceled" }>,
    writeCallback: Transition["sideWrites"],
  ): Transition["sideWrites"] {
    return async (tx) => {
      await writeCallback?.(tx);
      const news =
        runEnd.status === "completed"
          ? { kind: "execution.completed" as const }
          : { kind: "execution.failed" as const, code: runEnd.error.code };
      await notifyOwner(this.#ctx, tx, this.#about(), news);
    };
  }

  #toWaitingWrite(waitingFor: string[]): Transition["sideWrites"] {
    const writeCallback = this.#toCallbackWrite(waitingFor);
    return async (tx) => {
      await writeCallback?.(tx);
      await notifyOwner(this.#ctx, tx, this.#about(), {
        kind: "execution.waiting",
        steps: waitingFor,
        occurrence: String(this.#row.lastSeq),
      });
    };
  }

  #about() {
    return { ...this.#claimed, productId: this.#row.productId };
  }

  async #reportToParent(tx: Tx, parentId: string, result: ChildResult): Promise<void> {
    const sealed = sealResult(this.#ctx, this.#claimed, result);
    await reportToParent(tx, this.#claimed.id, sealed, this.#ctx.now());
    await notifyRun(tx, parentId);
  }

  /** null: the run has no callback. */
  #toCallbackWrite(waitingFor: string[]): Transition["sideWrites"] {
    const callbackId = this.#start?.callbackId ?? null;
    if (callbackId === null) return null;
    return (tx) => sendRunCallback(this.#ctx, tx, this.#claimed, callbackId, waitingFor);
  }

  async #checkpoint(
    progress: Progress | null,
    {
      opens,
      ...position
    }: Pick<Checkpoint, "dueAt" | "keepsLease" | "renewedUntil"> & Pick<RunPosition, "opens">,
    transition: Transition | null,
  ): Promise<Pick<CheckpointResult, "status" | "endedRow">> {
    const changes = progress?.drain() ?? { steps: [], events: [], abandoned: [] };
    const events = this.#toRows(withRunEvent(changes.events, transition?.event ?? null));
    const lease = { ...this.#claimed, signals: this.signals };
    // A run that ends as canceled may be that of a banned owner.
    const checksOwner = this.#row.isOwnerBanned === null && transition?.move.to !== "canceled";
    const checkpoint = {
      ...position,
      checksOwner,
      change: transition && toWorkflowChange(this.#ctx, this.#claimed, transition.move),
      notifiesEnd: position.dueAt === null,
      // An erased input leaves the texts of an earlier end.
      returnsEnd: position.dueAt === null && this.#start !== null && this.#isAwaited,
      steps: progress ? this.#toStepRows(progress, changes.steps) : [],
      events,
    };
    const calls = this.#calls.drain(opens);
    const {
      status: written,
      reservations: reserved,
      isOwnerBanned,
      endedRow,
    } = await this.#writeAll(
      lease,
      { ...checkpoint, callChanges: calls },
      transition?.sideWrites,
      changes.abandoned,
    ).catch((error) => {
      this.#calls.restore(calls);
      throw error;
    });
    if (checksOwner && (written === "written" || isOwnerBanned)) this.#row.isOwnerBanned = isOwnerBanned;
    if (written === "written") {
      this.#row.lastSeq += events.length;
      this.#calls.onWritten(calls, reserved);
    } else {
      progress?.restore(changes);
      this.#calls.restore(calls);
    }
    return { status: written, endedRow };
  }

  /** A request of this process waits for the end. */
  get #isAwaited(): boolean {
    return this.#ctx.runNotifications.isAwaited(this.#claimed.id);
  }

  /** Needs a transaction only when there are other writes beside the checkpoint. */
  #writeAll(
    lease: RunLease,
    checkpoint: Checkpoint,
    sideWrites: Transition["sideWrites"] | undefined,
    abandoned: string[],
  ): Promise<CheckpointResult> {
    const { db, shutdown, checkpointWriter } = this.#ctx;
    const write = () =>
      !sideWrites && abandoned.length === 0
        ? checkpointWriter.write(lease, checkpoint)
        : db.transaction().execute(async (tx) => {
            const result = await writeCheckpoint(tx, lease, checkpoint);
            if (result.status !== "written") return result;
            await sideWrites?.(tx);
            await requestCancelByIds(tx, abandoned, this.#ctx.now());
            return result;
          });
    // During an outage the results of calls stay in memory, because they were billed.
    return retryWhileUnavailable(shutdown, () => signaledIfDeadlocked(write));
  }

  #toRows(events: NewEvent[]): NewEventRow[] {
    const createdAt = this.#ctx.now();
    return events.map(({ type, data }, at) => ({ seq: this.#row.lastSeq + at + 1, type, data, createdAt }));
  }
}

const toExecutionRow = (row: EndedRow) => ({
  ...row,
  createdAt: new Date(row.createdAt),
  completedAt: new Date(row.completedAt),
});

/** A run that ends signals its parent, and the parent may cancel it at the same time: one of the two transactions repeats. */
async function signaledIfDeadlocked(write: () => Promise<CheckpointResult>): Promise<CheckpointResult> {
  try {
    return await write();
  } catch (error) {
    if (hasSqlState(error, DEADLOCK_DETECTED))
      return { status: "signaled", reservations: {}, isOwnerBanned: false, endedRow: null };
    throw error;
  }
}

/** The event of a start or a continuation precedes those of the steps; that of a wait or an end follows them. */
function withRunEvent(steps: NewEvent[], event: Transition["event"] | null): NewEvent[] {
  if (!event) return steps;
  const isFirst = event.type === "execution.started" || event.type === "execution.running";
  return isFirst ? [toEvent(event), ...steps] : [...steps, toEvent(event)];
}

const toEvent = ({ type, error }: Transition["event"]) => ({
  type,
  data: error ? { error } : {},
});

const listOpenApprovals = ({ state }: Progress): string[] =>
  [...state.all()].flatMap((run) =>
    run.status === "waiting" && state.work(run).type === "approval" ? [run.stepId] : [],
  );
