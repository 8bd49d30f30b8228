import { required } from "../../core/required.ts";
import { findMapEnd, type StepRef } from "./next-steps.ts";
import {
  addUsage,
  hasEnded,
  NO_ITEM,
  type RunState,
  type StepError,
  type StepRun,
  type StepStatus,
  type StepWork,
} from "./run-state.ts";
import { type StepEnd, type StepFailure, toFailedStep } from "./step-result.ts";

/** Steps and items together, against bills that the owner did not expect. */
const MAX_STEP_RUNS = 500;
/** JSON characters of one output, and of all outputs together. */
const MAX_OUTPUT_CHARACTERS = 1_000_000;
const MAX_OUTPUTS_CHARACTERS = 16_000_000;
/** Delay before a step tries a key again that has no free call. */
const BUSY_KEY_MS = 2_000;
const MAX_BACKOFF_MS = 3_600_000;
/** A step that more processes did not survive is not called again. */
const MAX_REPEATS = 3;

export interface StepEvent {
  type: string;
  data: Record<string, unknown>;
}

interface Changes {
  steps: StepRun[];
  events: StepEvent[];
  abandoned: string[];
}

/** Changes the states of steps, and collects the changes for the next checkpoint. */
export class Progress {
  readonly state: RunState;
  readonly #now: () => Date;
  readonly #changed = new Set<StepRun>();
  /** Steps that repeat an attempt instead of starting a new one. */
  readonly #resumed = new Set<StepRun>();
  #events: StepEvent[] = [];
  /** Child runs to cancel, because no step waits for them any more. */
  #abandoned: string[] = [];
  #characters = 0;
  /** A change would be lost, or a call repeated, if the process died now. */
  needsCheckpoint = false;

  constructor(state: RunState, now: () => Date) {
    this.state = state;
    this.#now = now;
    for (const { output } of state.all()) this.#characters += JSON.stringify(output).length;
  }

  /** Returns the changes since the last call. */
  drain(): Changes {
    const changes = { steps: [...this.#changed], events: this.#events, abandoned: this.#abandoned };
    this.#changed.clear();
    this.#events = [];
    this.#abandoned = [];
    this.needsCheckpoint = false;
    return changes;
  }

  /** Restores changes that were not written. */
  restore({ steps, events, abandoned }: Changes): void {
    this.#abandoned.unshift(...abandoned);
    for (const step of steps) this.#changed.add(step);
    this.#events.unshift(...events);
    this.needsCheckpoint = true;
  }

  /** null: the run has too many steps and items. */
  begin({ stepId, item }: StepRef): StepRun | null {
    const isNew = this.state.find(stepId, item) === undefined;
    const run = this.state.begin(stepId, item, this.#now());
    if (!isNew || this.state.count <= MAX_STEP_RUNS) return run;
    this.end(
      run,
      toFailedStep("LIMIT_EXCEEDED", `The workflow began more than ${MAX_STEP_RUNS} runs of steps.`),
    );
    return null;
  }

  /** A call follows. A process that resumes the step from here may repeat it. */
  startCall(run: StepRun): void {
    if (!this.#resumed.delete(run)) run.attempt++;
    this.#setDeadline(run);
    this.#changed.add(run);
    // The event was published when the step first waited for its key.
    if (!isKeyBusy(run.error))
      this.#addEvent("step.started", run, { ...(run.repeats > 0 && { possiblyRepeated: true }) });
    this.needsCheckpoint = true;
  }

  /** Queues a step again that a dead process was running, unless it ended too many processes. */
  resume(run: StepRun): void {
    Object.assign(run, { repeats: run.repeats + 1, status: "queued" });
    this.#resumed.add(run);
    if (run.repeats > MAX_REPEATS)
      this.end(run, toFailedStep("INTERNAL_ERROR", "Several processes ended while they ran this step."));
  }

  startMap(run: StepRun, items: number): void {
    run.items = items;
    this.#setDeadline(run);
    this.#changed.add(run);
    this.#addEvent("step.started", run, { items });
  }

  startWait(run: StepRun, until: Date): void {
    Object.assign(run, { status: "waiting", dueAt: until });
    this.#changed.add(run);
    this.#addEvent("step.waiting", run, { until: until.toISOString() });
    this.needsCheckpoint = true;
  }

  linkChildRun(run: StepRun, executionId: string): void {
    run.childRunId = executionId;
    this.#changed.add(run);
    this.needsCheckpoint = true;
  }

  /** Ends a step. A failure is retried as often as its step allows. */
  end(run: StepRun, result: StepEnd): void {
    if (result.kind === "failed") this.#fail(run, result);
    else if (result.kind === "skipped") this.#finish(run, "skipped", "step.skipped");
    else this.#complete(run, result);
  }

  #complete(run: StepRun, { output, callUsage }: Extract<StepEnd, { kind: "completed" }>): void {
    const characters = JSON.stringify(output ?? null).length;
    if (characters > MAX_OUTPUT_CHARACTERS || this.#characters + characters > MAX_OUTPUTS_CHARACTERS) {
      this.#fail(run, { ...OUTPUT_TOO_LARGE, callUsage });
      return;
    }
    this.#characters += characters;
    run.output = output ?? null;
    this.#addCallUsage(run, callUsage);
    this.#finish(run, "completed", "step.completed");
  }

  #fail(run: StepRun, failure: StepFailure): void {
    this.#addCallUsage(run, failure.callUsage);
    this.#abandon(run);
    const wasBusy = isKeyBusy(run.error);
    run.error = failure.error;
    const again = this.#retryAt(run, this.state.work(run), failure);
    if (again) this.#waitForRetry(run, again, wasBusy && isKeyBusy(run.error));
    else this.#finish(run, "failed", "step.failed");
  }

  #waitForRetry(run: StepRun, again: Date, isReported: boolean): void {
    Object.assign(run, { status: "waiting", dueAt: again });
    this.#changed.add(run);
    if (!isReported) this.#addEvent("step.retrying", run, { until: again.toISOString() });
    this.needsCheckpoint = true;
  }

  #abandon(run: StepRun): void {
    if (run.childRunId !== null) this.#abandoned.push(run.childRunId);
    run.childRunId = null;
  }

  /** null: no retry. */
  #retryAt(
    run: StepRun,
    work: StepWork,
    { error, isFinal, retryAfterSeconds = 0 }: StepFailure,
  ): Date | null {
    const inMs = (ms: number) => new Date(this.#now().getTime() + ms);
    if (isKeyBusy(error)) {
      // Nothing was sent.
      run.attempt--;
      return inMs(BUSY_KEY_MS);
    }
    if (isFinal || !work.retry || run.retries >= work.retry.max) return null;
    const backoffMs = work.retry.backoffSeconds * 1000 * 2 ** run.retries;
    run.retries++;
    return inMs(Math.min(MAX_BACKOFF_MS, Math.max(backoffMs, retryAfterSeconds * 1000)));
  }

  /** Adds the usage of an aborted call, even if its step has ended. */
  addUsage(run: StepRun, callUsage: StepFailure["callUsage"]): void {
    if (!callUsage) return;
    this.#addCallUsage(run, callUsage);
    this.#changed.add(run);
    this.needsCheckpoint = true;
  }

  #addCallUsage(run: StepRun, callUsage: StepFailure["callUsage"]): void {
    if (!callUsage) return;
    const { provider, model, usage } = callUsage;
    Object.assign(run, { provider, model, usage: run.usage ? addUsage(run.usage, usage) : usage });
  }

  #finish(run: StepRun, status: StepStatus, type: string): void {
    // A step without calls can be repeated at no cost.
    const isCostly = run.attempt > 0 || run.status === "waiting";
    if (status === "completed" || status === "skipped") run.error = null;
    Object.assign(run, { status, dueAt: null, endedAt: this.#now() });
    this.#changed.add(run);
    this.#addEvent(type, run, { ...(run.error && { error: run.error }) });
    if (isCostly) this.needsCheckpoint = true;
  }

  #setDeadline(run: StepRun): void {
    const { timeoutSeconds } = this.state.work(run);
    if (timeoutSeconds === undefined) return;
    run.dueAt = new Date(required(run.startedAt, "the start of a run").getTime() + timeoutSeconds * 1000);
  }

  #addEvent(type: string, run: StepRun, more: Record<string, unknown>): void {
    const { stepId, item, status, attempt } = run;
    const place = item === NO_ITEM ? { stepId } : { stepId, index: item };
    this.#events.push({
      type,
      data: { ...place, type: this.state.work(run).type, status, attempt, ...more },
    });
  }

  applyDecision(stepId: string, decision: "approved" | "rejected", decidedAt: Date): void {
    const run = this.state.find(stepId);
    if (run?.status !== "waiting") return;
    Object.assign(run, { decision, decidedAt });
    if (decision === "rejected")
      this.end(run, toFailedStep("APPROVAL_REJECTED", "The approval was rejected."));
    else this.end(run, { kind: "completed", output: { approved: true, decidedAt: decidedAt.toISOString() } });
  }

  /** Ends expired waits. Returns steps to begin again, and late steps whose calls must be aborted. */
  expireTimers(): { again: StepRun[]; late: StepRun[] } {
    const now = this.#now();
    const due = [...this.state.all()].filter(
      ({ status, dueAt }) => dueAt !== null && dueAt <= now && (status === "waiting" || status === "running"),
    );
    const late = due.filter(({ status }) => status === "running");
    for (const run of late)
      this.end(run, toFailedStep("STEP_TIMEOUT", "The step took longer than it may.", { isFinal: false }));
    const again = due.filter((run) => !late.includes(run) && !this.#endWait(run));
    return { again, late };
  }

  /** False: the step waited for a retry. */
  #endWait(run: StepRun): boolean {
    const { type } = this.state.work(run);
    if (type === "delay") this.end(run, { kind: "completed", output: null });
    else if (type === "approval")
      this.end(run, toFailedStep("APPROVAL_TIMEOUT", "The approval timed out without a decision."));
    else return false;
    return true;
  }

  /** Ends maps with all items ended, or with one failed. Returns the failed ones, whose other items must be canceled. */
  endMaps(fit: (map: StepRun, outputs: unknown[]) => StepEnd): StepRun[] {
    const failedMaps: StepRun[] = [];
    for (const { id, type } of this.state.workflow.steps) {
      const map = this.state.find(id);
      if (type !== "map" || map?.status !== "running") continue;
      const end = findMapEnd(this.state, map);
      if (end && "outputs" in end) this.end(map, fit(map, end.outputs));
      if (!end || "outputs" in end) continue;
      const { code, message } = required(end.failed.error, "the error of a failed item");
      this.end(map, toFailedStep(code, `Item ${end.failed.item}: ${message}`, { isFinal: false }));
      failedMaps.push(map);
    }
    return failedMaps;
  }

  /** Queues the items of a restarted map that have no output. */
  reopenItems(map: StepRun): void {
    for (const run of this.state.itemsOf(map)) {
      if (!run || run.status === "completed" || run.status === "skipped") continue;
      Object.assign(run, { status: "queued", retries: 0, error: null, childRunId: null, dueAt: null });
      this.#changed.add(run);
    }
  }

  /** Cancels a step of an ended run, or an item of an ended map. */
  cancel(run: StepRun): void {
    if (hasEnded(run)) return;
    if (run.childRunId !== null) this.#abandoned.push(run.childRunId);
    this.#finish(run, "canceled", "step.canceled");
  }

  /** null: no timer. */
  nextDueAt(): Date | null {
    const due = [...this.state.all()].flatMap(({ status, dueAt }) =>
      dueAt && (status === "waiting" || status === "running") ? [dueAt.getTime()] : [],
    );
    return due.length === 0 ? null : new Date(Math.min(...due));
  }
}

const isKeyBusy = (error: StepError | null): boolean => error?.code === "KEY_CONCURRENCY_LIMIT";

const OUTPUT_TOO_LARGE = {
  error: { code: "LIMIT_EXCEEDED", message: "The output is too large for a workflow." },
  isFinal: true,
};
