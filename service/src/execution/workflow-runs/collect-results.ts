import type { Context } from "../../core/context.ts";
import type { LeavingReason } from "../executions/queries.ts";
import { canceledBy } from "../prompt-runs/run-record.ts";
import { fitted, type Surroundings } from "./prepare-step.ts";
import type { Progress } from "./progress.ts";
import type { Ending } from "./run-end.ts";
import type { Heard } from "./run-queries.ts";
import { hasEnded } from "./run-state.ts";
import { openResult } from "./sealed-texts.ts";
import type { End } from "./step-result.ts";
import type { Result, Tasks } from "./tasks.ts";

/** null: its owner asked. */
const canceled = (reason: LeavingReason | null): Ending => ({
  status: "canceled",
  error: reason && { code: reason, message: canceledBy[reason] },
});

/** Takes in what a run was told from outside, and what came of the tasks of its steps. */
export class Intake {
  readonly #ctx: Context;
  readonly #run: Surroundings;
  readonly #progress: Progress;
  readonly #tasks: Tasks;
  /** What maps run through, while they run. */
  readonly items = new Map<string, unknown[]>();
  /** It was told to end. */
  cancel: Ending | null = null;
  /** Ends of executions that a step may have called without knowing so yet. */
  #early: Heard["ends"] = [];

  constructor(ctx: Context, run: Surroundings, progress: Progress, tasks: Tasks) {
    this.#ctx = ctx;
    this.#run = run;
    this.#progress = progress;
    this.#tasks = tasks;
  }

  hear({ cancelRequestedAt, cancelReason, decisions, ends }: Heard): void {
    if (cancelRequestedAt) this.cancelFor(cancelReason);
    for (const { stepId, decision, decidedAt } of decisions)
      this.#progress.decide(stepId, decision, new Date(decidedAt));
    for (const end of ends) this.#endCalled(end);
    this.#early = ends.filter((end) => this.#isEarly(end));
  }

  #isEarly({ stepId, item }: Heard["ends"][number]): boolean {
    const run = this.#progress.state.find(stepId, item);
    return run !== undefined && !hasEnded(run) && run.called === null;
  }

  cancelFor(reason: LeavingReason | null): void {
    this.cancel = canceled(reason);
  }

  /** An execution that a step called has ended. */
  #endCalled({ id, stepId, item, sealedResult }: Heard["ends"][number]): void {
    const run = this.#progress.state.find(stepId, item);
    if (run?.status !== "running" || run.called !== id) return;
    const owned = { id, userId: this.#run.userId };
    const { output, error, spent } = openResult(this.#ctx, owned, sealedResult);
    const facts = { provider: null, model: null, spent };
    this.#run.costLimit?.spend(spent.costUsd);
    const outcome: End = error
      ? { kind: "failed", error, isFinal: false, facts }
      : fitted(this.#progress.state.work(run), output, facts);
    this.#progress.settle(run, outcome);
  }

  takeResults(): void {
    for (const result of this.#tasks.take()) this.#take(result);
  }

  #take({ task, prepared }: Result): void {
    const { run } = task;
    switch (prepared.kind) {
      case "given_up":
        this.#progress.noteSpent(run, prepared.facts);
        return;
      case "call":
        this.#progress.noteCall(run);
        this.#tasks.add(task, prepared);
        return;
      case "called":
        this.#progress.noteCalled(run, prepared.executionId);
        // It may be over by now: where this is told late, or where it was called by a process that died.
        for (const end of this.#early) this.#endCalled(end);
        return;
      case "wait":
        this.#progress.noteWait(run, prepared.until);
        return;
      case "map":
        this.items.set(run.stepId, prepared.items);
        this.#progress.noteMap(run, prepared.items.length);
        return;
      default:
        this.#progress.settle(run, prepared);
    }
  }
}
