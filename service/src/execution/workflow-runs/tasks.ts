import type { Context } from "../../core/context.ts";
import { retryWhileUnavailable } from "../../platform/db/database.ts";
import type { OpenCall } from "../provider-keys/provider-calls.ts";
import { CHECKPOINT_DELAY_MS, settlesWithin } from "./checkpoint-delay.ts";
import type { StepRef } from "./next-steps.ts";
import { type StepRun, type StepWork, stepKey } from "./run-state.ts";
import type { PreparedStep } from "./step-result.ts";
import { StepTrace } from "./trace.ts";

/** A call that was aborted ends at once, unless somebody does not listen. */
const ABORT_TIMEOUT_MS = 1_000;

type Call = Extract<PreparedStep, { kind: "call" }>;

/** Something that is under way for a step or an item. */
export interface StepTask {
  run: StepRun;
  aborter: AbortController;
  trace: StepTrace;
}

/** What came of a task: how it ended, or what is to be called for it. */
export interface TaskResult {
  task: StepTask;
  prepared: PreparedStep;
}

/** All that is under way for the steps of one run. It rings when something came of it. */
export class StepTasks {
  readonly #ctx: Context;
  readonly #executionId: string;
  readonly #wake: () => void;
  readonly #tasks = new Map<string, StepTask>();
  /** What becomes of steps before anybody outside is asked. */
  readonly #preparing = new Set<Promise<void>>();
  /** All that has begun and has not ended, given up or not. */
  readonly #running = new Set<Promise<void>>();
  /** In milliseconds of performance.now(). */
  #delayedUntil: number | null = null;
  /** Written down as begun before they are called. */
  #calls: (Call & { task: StepTask })[] = [];
  #results: TaskResult[] = [];

  constructor(ctx: Context, executionId: string, wake: () => void) {
    this.#ctx = ctx;
    this.#executionId = executionId;
    this.#wake = wake;
  }

  /** Nothing is under way, and what was given up has said what it used. */
  get isEmpty(): boolean {
    return this.#tasks.size === 0 && this.#running.size === 0;
  }

  get hasCalls(): boolean {
    return this.#calls.length > 0;
  }

  /** Begins to find out what a step comes to. */
  prepare(run: StepRun, work: StepWork, prepare: () => Promise<PreparedStep>): void {
    const task: StepTask = { run, aborter: new AbortController(), trace: new StepTrace(run, work) };
    this.#tasks.set(stepKey(run.stepId, run.item), task);
    const prepared = this.#launch(task, prepare);
    this.#preparing.add(prepared);
    void prepared.then(() => this.#preparing.delete(prepared));
  }

  /** To be called when that is written down. */
  queueCall(task: StepTask, call: Call): void {
    this.#tasks.set(stepKey(task.run.stepId, task.run.item), task);
    this.#calls.push({ task, ...call });
  }

  /** What takes its part of a key's limits where it is written down. */
  get callsToOpen(): OpenCall[] {
    return this.#calls.flatMap(({ opens }) => opens ?? []);
  }

  startCalls(): void {
    this.#delayedUntil = null;
    for (const { task, call } of this.#calls.splice(0))
      void this.#launch(task, () => call(AbortSignal.any([task.aborter.signal, this.#ctx.shutdown])));
  }

  /** What came of tasks since it was last taken. Of those that were given up meanwhile only what they have used counts. */
  *drain(): Generator<TaskResult> {
    for (const result of this.#results.splice(0)) {
      const { task, prepared } = result;
      const { stepId, item } = task.run;
      if (this.#tasks.get(stepKey(stepId, item)) === task) {
        this.#tasks.delete(stepKey(stepId, item));
        yield result;
      } else if ("callUsage" in prepared && prepared.callUsage) {
        yield { task, prepared: { kind: "aborted", callUsage: prepared.callUsage } };
      }
    }
  }

  abort({ stepId, item }: StepRef): void {
    const key = stepKey(stepId, item);
    this.#tasks.get(key)?.aborter.abort();
    this.#tasks.delete(key);
    this.#calls = this.#calls.filter(({ task }) => stepKey(task.run.stepId, task.run.item) !== key);
  }

  abortAll(): void {
    for (const { aborter: stop } of this.#tasks.values()) stop.abort();
    this.#tasks.clear();
    this.#calls = [];
  }

  /** Gives up all, and resolves when it is known what that has used. */
  async abortAllAndWait(): Promise<void> {
    this.abortAll();
    if (this.#running.size > 0) await settlesWithin(ABORT_TIMEOUT_MS, Promise.allSettled(this.#running));
  }

  /** What begins is mostly known at once, and is then written in one go with what had ended: a commit less for each step. */
  async waitForPrepared(): Promise<boolean> {
    if (this.#preparing.size === 0) return false;
    this.#delayedUntil ??= performance.now() + CHECKPOINT_DELAY_MS;
    const left = this.#delayedUntil - performance.now();
    return left > 0 && settlesWithin(left, Promise.all(this.#preparing));
  }

  #launch(task: StepTask, work: () => Promise<PreparedStep>): Promise<void> {
    const running: Promise<void> = this.#run(task, work).then((prepared) => {
      this.#running.delete(running);
      task.trace.end(prepared);
      this.#results.push({ task, prepared });
      this.#wake();
    });
    this.#running.add(running);
    return running;
  }

  #run({ trace, aborter: stop }: StepTask, work: () => Promise<PreparedStep>): Promise<PreparedStep> {
    const over = AbortSignal.any([stop.signal, this.#ctx.shutdown]);
    return trace
      .within(() => retryWhileUnavailable(over, work))
      .catch((error): PreparedStep => {
        this.#ctx.log.error(
          { execution: this.#executionId, err: error },
          "a step of a workflow could not be run",
        );
        return {
          kind: "failed",
          error: { code: "INTERNAL_ERROR", message: "Something went wrong on our side." },
          isFinal: true,
        };
      });
  }
}
