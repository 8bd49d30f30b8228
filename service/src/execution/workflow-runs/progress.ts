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

/** Runs of steps and items together: more would be a bill that nobody foresaw. */
const MAX_STEP_RUNS = 500;
/** Of one output, and of all together, as JSON. */
const MAX_OUTPUT_CHARACTERS = 1_000_000;
const MAX_OUTPUTS_CHARACTERS = 16_000_000;
/** A key that runs as many calls as it may is asked again so soon. */
const BUSY_KEY_MS = 2_000;
const MAX_BACKOFF_MS = 3_600_000;
/** A step that so many processes died of is not called again. */
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

/** Moves the steps of a run, and notes what moved: whoever drives the run asks this what is to be done and writes down what was. */
export class Progress {
  readonly state: RunState;
  readonly #now: () => Date;
  readonly #changed = new Set<StepRun>();
  /** Their attempt is made once more, and is no other. */
  readonly #resumed = new Set<StepRun>();
  #events: StepEvent[] = [];
  /** Executions that steps called and that go on for nobody now. */
  #abandoned: string[] = [];
  #characters = 0;
  /** Something moved that would be lost, or called again, if this process died now. */
  needsCheckpoint = false;

  constructor(state: RunState, now: () => Date) {
    this.state = state;
    this.#now = now;
    for (const { output } of state.all()) this.#characters += JSON.stringify(output).length;
  }

  /** What moved since it was last taken. */
  drain(): Changes {
    const taken = { steps: [...this.#changed], events: this.#events, abandoned: this.#abandoned };
    this.#changed.clear();
    this.#events = [];
    this.#abandoned = [];
    this.needsCheckpoint = false;
    return taken;
  }

  /** What was taken could not be written: it is still to be. */
  restore({ steps, events, abandoned }: Changes): void {
    this.#abandoned.unshift(...abandoned);
    for (const step of steps) this.#changed.add(step);
    this.#events.unshift(...events);
    this.needsCheckpoint = true;
  }

  /** A step or an item begins; null where there have been too many. */
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

  /** It is about to be called. Whoever finds it so without calling it may be the second to call. */
  startCall(run: StepRun): void {
    if (!this.#resumed.delete(run)) run.attempt++;
    this.#setDeadline(run);
    this.#changed.add(run);
    // Told when it first waited for its key: that it still does is nothing new.
    if (!isKeyBusy(run.error))
      this.#addEvent("step.started", run, { ...(run.repeats > 0 && { possiblyRepeated: true }) });
    this.needsCheckpoint = true;
  }

  /** What a dead process had begun begins again, unless that has ended too many of them. */
  resume(run: StepRun): void {
    Object.assign(run, { repeats: run.repeats + 1, status: "queued" });
    this.#resumed.add(run);
    if (run.repeats > MAX_REPEATS)
      this.end(run, toFailedStep("INTERNAL_ERROR", "Several processes ended while they ran this step."));
  }

  /** What a map runs through is known. */
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

  /** How it went. A failure that may pass is tried again as often as its step says. */
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

  #waitForRetry(run: StepRun, again: Date, isToldOf: boolean): void {
    Object.assign(run, { status: "waiting", dueAt: again });
    this.#changed.add(run);
    if (!isToldOf) this.#addEvent("step.retrying", run, { until: again.toISOString() });
    this.needsCheckpoint = true;
  }

  #abandon(run: StepRun): void {
    if (run.childRunId !== null) this.#abandoned.push(run.childRunId);
    run.childRunId = null;
  }

  /** null: never. */
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

  /** What calls have used that were given up, though the step may have ended by then. */
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
    // What was asked of nobody can be worked out again.
    const isDear = run.attempt > 0 || run.status === "waiting";
    if (status === "completed" || status === "skipped") run.error = null;
    Object.assign(run, { status, dueAt: null, endedAt: this.#now() });
    this.#changed.add(run);
    this.#addEvent(type, run, { ...(run.error && { error: run.error }) });
    if (isDear) this.needsCheckpoint = true;
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

  /** What was decided on approvals. */
  applyDecision(stepId: string, decision: "approved" | "rejected", decidedAt: Date): void {
    const run = this.state.find(stepId);
    if (run?.status !== "waiting") return;
    Object.assign(run, { decision, decidedAt });
    if (decision === "rejected")
      this.end(run, toFailedStep("APPROVAL_REJECTED", "The approval was rejected."));
    else this.end(run, { kind: "completed", output: { approved: true, decidedAt: decidedAt.toISOString() } });
  }

  /** Ends waits that are over; answers what begins again, and what had its time and must be given up. */
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

  /** False: it waited for its next attempt. */
  #endWait(run: StepRun): boolean {
    const { type } = this.state.work(run);
    if (type === "delay") this.end(run, { kind: "completed", output: null });
    else if (type === "approval")
      this.end(run, toFailedStep("APPROVAL_TIMEOUT", "The approval timed out without a decision."));
    else return false;
    return true;
  }

  /** Ends maps of which all items have, or one has failed; answers those whose other items must be given up. */
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

  /** A map that begins again keeps what came out of its items, and forgets the others. */
  reopenItems(map: StepRun): void {
    for (const run of this.state.itemsOf(map)) {
      if (!run || run.status === "completed" || run.status === "skipped") continue;
      Object.assign(run, { status: "queued", retries: 0, error: null, childRunId: null, dueAt: null });
      this.#changed.add(run);
    }
  }

  /** Nothing of it goes on: the run has ended without it, or its map has. */
  cancel(run: StepRun): void {
    if (hasEnded(run)) return;
    if (run.childRunId !== null) this.#abandoned.push(run.childRunId);
    this.#finish(run, "canceled", "step.canceled");
  }

  /** When time alone will move something; null: it will not. */
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
