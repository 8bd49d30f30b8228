import type { Context } from "../../core/context.ts";
import { required } from "../../core/required.ts";
import type { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import { retryWhileUnavailable } from "../../platform/db/database.ts";
import { CHECKPOINT_DELAY_MS, settlesWithin } from "./checkpoint-delay.ts";
import { ResultCollector } from "./collect-results.ts";
import { CostLimit } from "./cost-limit.ts";
import type { InsertedRun } from "./local-workers.ts";
import { nextSteps, type StepRef } from "./next-steps.ts";
import { PendingCalls } from "./pending-calls.ts";
import { checkOutput, prepareStep, type RunContext } from "./prepare-step.ts";
import { Progress } from "./progress.ts";
import { findRunEnd, type RunEnd } from "./run-end.ts";
import { RunKeys } from "./run-keys.ts";
import { type ClaimedRun, type RunRow, type RunSignals, readLeasedRun, readSignals } from "./run-queries.ts";
import { hasEnded, NO_ITEM, RunState, type StepRun, sumUsage } from "./run-state.ts";
import { type CheckpointStatus, RunWriter } from "./run-writer.ts";
import { openRunInput, type RunInput } from "./sealed-texts.ts";
import { readRunState } from "./step-rows.ts";
import { StepTasks } from "./tasks.ts";
import { traceRunInput } from "./trace.ts";
import { WakeUp } from "./wake-up.ts";

/** A run that was leased this often without a checkpoint probably crashes its worker. */
const MAX_LEASES = 5;
const ABANDONED = { code: "INTERNAL_ERROR", message: "Several processes ended while they ran this." };
/** Polls a run that waits for child runs, in case a signal is lost. */
const RECHECK_MS = 60_000;

/**
 * Drives one run while it holds the lease: starts ready steps and writes checkpoints. It releases a run that only time, people or
 * other runs can move.
 */
export class RunDriver {
  readonly id: string;
  readonly userId: string;
  readonly #ctx: Context;
  readonly #claimed: ClaimedRun;
  /** null: the run is read. */
  readonly #inserted: InsertedRun | null;
  readonly #evaluator: Evaluator;
  readonly #leaseMs: number;
  readonly #wakeUp = new WakeUp();
  readonly #tasks: StepTasks;
  readonly #calls: PendingCalls;
  #isSignaled = false;
  #isStopping = false;
  #isLost = false;
  #nextDueAt: Date | null = null;
  #writer!: RunWriter;
  #runContext!: RunContext;
  #progress!: Progress;
  #results!: ResultCollector;

  /** `inserted`: the run as this process inserts it. */
  constructor(
    ctx: Context,
    claimed: ClaimedRun,
    evaluator: Evaluator,
    { leaseMs, inserted }: { leaseMs: number; inserted: InsertedRun | null },
  ) {
    this.id = claimed.id;
    this.userId = claimed.userId;
    this.#ctx = ctx;
    this.#claimed = claimed;
    this.#inserted = inserted;
    this.#evaluator = evaluator;
    this.#leaseMs = leaseMs;
    this.#calls = new PendingCalls(ctx);
    this.#tasks = new StepTasks(ctx, claimed.id, () => this.#wakeUp.wake());
  }

  get lease(): { id: string; token: string } {
    return this.#claimed;
  }

  /** Whether the database has the run and its lease. */
  get isInserted(): boolean {
    return this.#writer?.isInserted ?? !this.#inserted?.insertion;
  }

  get hasEnded(): boolean {
    return this.#writer?.hasEnded ?? false;
  }

  /** Resolves when the run has ended, is released, or its lease is lost. */
  async drive(): Promise<void> {
    try {
      if (!(await this.#open())) return;
      while (await this.#advance()) await this.#wakeUp.wait();
    } finally {
      this.#inserted?.insertion?.close();
      this.#tasks.abortAll();
      await this.#calls.close();
    }
  }

  /** The run may have new signals. */
  signal(): void {
    this.#isSignaled = true;
    this.#wakeUp.wake();
  }

  /** `signals` counts the run's signals; undefined: the lease is lost. */
  onLeaseRenewed(signals: number | undefined): void {
    if (signals === undefined) this.#isLost = true;
    if (signals !== this.#writer?.signals) this.signal();
  }

  /** Wakes the driver if a timer of the run is due. */
  tick(now: Date): void {
    if (this.#nextDueAt && this.#nextDueAt <= now) this.#wakeUp.wake();
  }

  /** Starts no more steps, and releases the run when its calls have ended. */
  stop(): void {
    this.#isStopping = true;
    this.#wakeUp.wake();
  }

  async #open(): Promise<boolean> {
    const ctx = this.#ctx;
    const { id, userId, leases } = this.#claimed;
    const inserted = this.#inserted;
    const row = inserted ? toNewRunRow(inserted) : await readLeasedRun(ctx.db, this.#claimed);
    if (!row) return false;
    const start = inserted ? inserted.start : this.#openInput(row);
    this.#writer = new RunWriter(ctx, this.#claimed, this.#calls, row, {
      start,
      insertion: inserted?.insertion ?? null,
    });
    if (start === null || leases > MAX_LEASES) {
      this.#writer.signals = row.signals;
      await this.#writer.end(null, { status: "failed", error: ABANDONED });
      return false;
    }
    traceRunInput(start, row);
    const workflow = inserted?.workflow ?? Workflow.parse(JSON.parse(start.definition));
    const state = row.hasSteps
      ? await readRunState(ctx, ctx.db, this.#claimed, workflow)
      : new RunState(workflow, []);
    state.pin(start.pinned ?? {});
    const costLimit =
      start.maxCost === null ? null : new CostLimit(start.maxCost, sumUsage(state.all()).costUsd);
    this.#runContext = {
      ...{ id, userId, depth: row.depth, start, costLimit, evaluator: this.#evaluator },
      keys: new RunKeys(ctx, userId, start, inserted?.keys),
      pendingCalls: this.#calls,
    };
    this.#progress = new Progress(state, ctx.now);
    this.#results = new ResultCollector(ctx, this.#runContext, this.#progress, this.#tasks);
    this.#applySignals(row);
    this.#cancelIfOwnerIsBanned();
    this.#resumeAll();
    return true;
  }

  /** null: the input was erased. */
  #openInput({ sealedStart }: RunRow): RunInput | null {
    return sealedStart === null ? null : openRunInput(this.#ctx, this.#claimed, sealedStart);
  }

  /** A ban cancels the runs that it sees. One that was inserted at the same time is canceled here. */
  #cancelIfOwnerIsBanned(): void {
    if (this.#writer.isOwnerBanned) this.#results.cancelFor("account_banned");
  }

  /** The last process may have called a step that was running. A map evaluates its items again. */
  #resumeAll(): void {
    for (const run of this.#progress.state.all()) {
      if (run.status !== "running" || run.childRunId !== null) continue;
      if (this.#progress.state.work(run).type === "map") this.#prepare(run);
      else this.#progress.resume(run);
    }
  }

  /** Makes all changes that are possible now. Returns false when the driver must leave the run. */
  async #advance(): Promise<boolean> {
    if (this.#isLost) return false;
    this.#results.collect();
    if (!this.#writer.isInserted && !(await this.#insertIfWithoutTasks())) return false;
    if (this.#isSignaled && !(await this.#readSignals())) return false;
    this.#expireTimers();
    for (const map of this.#progress.endMaps((run, outputs) =>
      checkOutput(this.#progress.state.work(run), outputs),
    ))
      this.#dropItems(map);
    const runEnd = this.#results.cancelEnd ?? (await this.#findEnd());
    if (runEnd) {
      await this.#countAbandoned();
      return this.#continues(await this.#writer.end(this.#progress, runEnd));
    }
    if (!this.#isStopping) this.#beginReady();
    if (this.#tasks.isEmpty) return this.#continues(await this.#release());
    if (!this.#writer.isInserted && !this.#tasks.hasCalls) {
      if (await this.#isCheckpointDelayed()) return true;
      if (!(await this.#writer.insert())) return false;
    }
    if (this.#progress.needsCheckpoint || this.#calls.hasEnded || this.#tasks.hasCalls) {
      if (await this.#isCheckpointDelayed()) return true;
      const leaseEnd = new Date(this.#ctx.now().getTime() + this.#leaseMs);
      const written = await this.#writer.write(this.#progress, {
        dueAt: leaseEnd,
        renewedUntil: new Date(leaseEnd.getTime() - this.#leaseMs / 2),
        keepsLease: true,
        status: "running",
        opens: this.#tasks.callsToOpen,
      });
      if (written !== "written") return this.#continues(written);
      this.#tasks.startCalls();
    }
    this.#nextDueAt = this.#progress.nextDueAt();
    return true;
  }

  /** The first steps are done without a call: the run is inserted before its end is evaluated. */
  async #insertIfWithoutTasks(): Promise<boolean> {
    const hasBegun = this.#progress.state.count > 0;
    return hasBegun && this.#tasks.isEmpty ? this.#writer.insert() : true;
  }

  /** Aborts what still runs at the end of the run, and counts its cost. */
  async #countAbandoned(): Promise<void> {
    await this.#tasks.abortAllAndWait();
    this.#results.collect();
  }

  /** The ends of calls do not wait for a result that takes long to evaluate. */
  async #findEnd(): Promise<RunEnd | null> {
    const runEnd = findRunEnd(this.#runContext, this.#progress.state);
    if (this.#calls.hasEnded && !(await settlesWithin(CHECKPOINT_DELAY_MS, runEnd)))
      await this.#calls.flush();
    return runEnd;
  }

  /** A run that leaves `waiting` writes a checkpoint at once, so that a later wait is an event again. */
  async #isCheckpointDelayed(): Promise<boolean> {
    return this.#writer.status !== "waiting" && (await this.#tasks.waitForPrepared());
  }

  /** No task is left: the run waits for time, people, child runs, or another process. */
  #release(): Promise<CheckpointStatus> {
    const { state } = this.#progress;
    const now = this.#ctx.now();
    const runs = [...state.all()];
    const isInterrupted = runs.some(
      (run) => run.status === "running" && !run.childRunId && state.work(run).type !== "map",
    );
    const next = this.#progress.nextDueAt() ?? new Date(now.getTime() + RECHECK_MS);
    return this.#writer.write(this.#progress, {
      dueAt: this.#isStopping || isInterrupted ? now : next,
      keepsLease: false,
      renewedUntil: null,
      status: runs.some(({ status }) => status === "waiting") ? "waiting" : "running",
      opens: [],
    });
  }

  #beginReady(): void {
    for (const ref of nextSteps(this.#progress.state)) if (this.#canBegin(ref)) this.#begin(ref);
  }

  /** After a restart an item waits until its map has evaluated its items again. */
  #canBegin({ stepId, item }: StepRef): boolean {
    return item === NO_ITEM || this.#results.items.has(stepId);
  }

  /** An unread signal prevents a checkpoint, so the driver must read it and continue. */
  #continues(written: CheckpointStatus): boolean {
    if (written !== "signaled") return false;
    this.#cancelIfOwnerIsBanned();
    this.signal();
    return true;
  }

  async #readSignals(): Promise<boolean> {
    this.#isSignaled = false;
    const signals = await retryWhileUnavailable(this.#ctx.shutdown, () =>
      readSignals(this.#ctx.db, this.#claimed),
    );
    if (signals) this.#applySignals(signals);
    return signals !== undefined;
  }

  #applySignals(signals: RunSignals): void {
    this.#writer.signals = signals.signals;
    this.#results.applySignals(signals);
  }

  #expireTimers(): void {
    const { again, late } = this.#progress.expireTimers();
    for (const run of late) {
      this.#tasks.abort(run);
      if (this.#progress.state.work(run).type === "map") this.#dropItems(run);
    }
    if (this.#isStopping) return;
    for (const run of again) if (this.#canBegin(run)) this.#begin(run);
  }

  #dropItems(map: StepRun): void {
    for (const run of this.#progress.state.itemsOf(map)) {
      if (!run || hasEnded(run)) continue;
      this.#tasks.abort(run);
      this.#progress.cancel(run);
    }
  }

  #begin(ref: StepRef): void {
    const run = this.#progress.begin(ref);
    if (!run) return;
    if (run.items !== null) this.#progress.reopenItems(run);
    this.#prepare(run);
  }

  #prepare(run: StepRun): void {
    const { state } = this.#progress;
    const work = state.work(run);
    const bindings = { input: this.#runContext.start.input, steps: state.outputs() };
    const item =
      run.item === NO_ITEM
        ? {}
        : {
            item: required(this.#results.items.get(run.stepId), "the items of a map")[run.item],
            index: run.item,
          };
    this.#tasks.prepare(run, work, () =>
      prepareStep(this.#ctx, this.#runContext, run, work, { ...bindings, ...item }),
    );
  }
}

/** As `readLeasedRun` would read it. Whether the owner is banned is read by the first checkpoint. */
const toNewRunRow = ({ start, depth, createdAt }: InsertedRun): RunRow & RunSignals => ({
  ...{ hasSteps: false, sealedStart: null, depth, status: "queued", parentId: null, isOwnerBanned: null },
  ...{ productId: start.productId, productVersion: start.version, createdAt, lastSeq: 1 },
  ...{ signals: 0, cancelRequestedAt: null, cancelReason: null, decisions: [], ends: [] },
});
