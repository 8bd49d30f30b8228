import type { Context } from "../../core/context.ts";
import type { AccountCancelReason } from "../executions/queries.ts";
import { cancelMessages } from "../prompt-runs/run-record.ts";
import { checkOutput, type RunContext } from "./prepare-step.ts";
import type { Progress } from "./progress.ts";
import type { RunEnd } from "./run-end.ts";
import type { RunSignals } from "./run-queries.ts";
import { hasEnded } from "./run-state.ts";
import { openResult } from "./sealed-texts.ts";
import type { StepEnd } from "./step-result.ts";
import type { StepTasks, TaskResult } from "./tasks.ts";

/** null: the owner canceled it. */
const toCanceledEnd = (reason: AccountCancelReason | null): RunEnd => ({
  status: "canceled",
  error: reason && { code: reason, message: cancelMessages[reason] },
});

/** Applies signals from outside and the results of step tasks to the progress of a run. */
export class ResultCollector {
  readonly #ctx: Context;
  readonly #run: RunContext;
  readonly #progress: Progress;
  readonly #tasks: StepTasks;
  /** The items of running maps, by step id. */
  readonly items = new Map<string, unknown[]>();
  /** Set when the run must be canceled. */
  cancelEnd: RunEnd | null = null;
  /** Ends of child runs whose ids the steps do not have yet. */
  #earlyEnds: RunSignals["ends"] = [];

  constructor(ctx: Context, run: RunContext, progress: Progress, tasks: StepTasks) {
    this.#ctx = ctx;
    this.#run = run;
    this.#progress = progress;
    this.#tasks = tasks;
  }

  applySignals({ cancelRequestedAt, cancelReason, decisions, ends }: RunSignals): void {
    if (cancelRequestedAt) this.cancelFor(cancelReason);
    for (const { stepId, decision, decidedAt } of decisions)
      this.#progress.applyDecision(stepId, decision, new Date(decidedAt));
    for (const end of ends) this.#endChild(end);
    this.#earlyEnds = ends.filter((end) => this.#isEarly(end));
  }

  #isEarly({ stepId, item }: RunSignals["ends"][number]): boolean {
    const run = this.#progress.state.find(stepId, item);
    return run !== undefined && !hasEnded(run) && run.childRunId === null;
  }

  cancelFor(reason: AccountCancelReason | null): void {
    this.cancelEnd = toCanceledEnd(reason);
  }

  #endChild({ id, stepId, item, sealedResult }: RunSignals["ends"][number]): void {
    const run = this.#progress.state.find(stepId, item);
    if (run?.status !== "running" || run.childRunId !== id) return;
    const owned = { id, userId: this.#run.userId };
    const { output, error, usage } = openResult(this.#ctx, owned, sealedResult);
    const callUsage = { provider: null, model: null, usage };
    this.#run.costLimit?.spend(usage.costUsd);
    const result: StepEnd = error
      ? { kind: "failed", error, isFinal: false, callUsage }
      : checkOutput(this.#progress.state.work(run), output, callUsage);
    this.#progress.end(run, result);
  }

  collect(): void {
    for (const result of this.#tasks.drain()) this.#apply(result);
  }

  #apply({ task, prepared }: TaskResult): void {
    const { run } = task;
    switch (prepared.kind) {
      case "aborted":
        this.#progress.addUsage(run, prepared.callUsage);
        return;
      case "call":
        this.#progress.startCall(run);
        this.#tasks.queueCall(task, prepared);
        return;
      case "called":
        this.#progress.linkChildRun(run, prepared.executionId);
        // The child run may already have ended: this result is late, or a dead process started the run.
        for (const end of this.#earlyEnds) this.#endChild(end);
        return;
      case "wait":
        this.#progress.startWait(run, prepared.until);
        return;
      case "map":
        this.items.set(run.stepId, prepared.items);
        this.#progress.startMap(run, prepared.items.length);
        return;
      default:
        this.#progress.end(run, prepared);
    }
  }
}
