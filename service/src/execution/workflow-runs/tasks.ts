import type { Context } from "../../core/context.ts";
import { retryWhileUnavailable } from "../../platform/db/database.ts";
import type { OpenCall } from "../provider-keys/provider-calls.ts";
import { CHECKPOINT_DELAY_MS, settlesWithin } from "./checkpoint-delay.ts";
import type { StepRef } from "./next-steps.ts";
import { type StepRun, type StepWork, stepKey } from "./run-state.ts";
import type { PreparedStep } from "./step-result.ts";
import { StepTrace } from "./trace.ts";

/** An aborted call ends within this time, unless its code ignores the signal. */
const ABORT_TIMEOUT_MS = 1_000;

type Call = Extract<PreparedStep, { kind: "call" }>;

/** Work in progress for a step or an item. */
export interface StepTask {
  run: StepRun;
  aborter: AbortController;
  /** Aborts with the task or at a shutdown. One for all its work: to combine signals costs more than a listener. */
  signal: AbortSignal;
  trace: StepTrace;
}

/** The end of a step, or the call that it needs. */
export interface TaskResult {
  task: StepTask;
  prepared: PreparedStep;
}

/** All tasks of one run. Calls `wake` for each result. */
export class StepTasks {
  readonly #ctx: Context;
  readonly #executionId: string;
  readonly #wake: () => void;
  readonly #tasks = new Map<string, StepTask>();
  /** Evaluations of steps, before any call. */
  readonly #preparing = new Set<Promise<void>>();
  /** All unfinished tasks, aborted ones included. */
  readonly #running = new Set<Promise<void>>();
  /** In milliseconds of performance.now(). */
  #delayedUntil: number | null = null;
  /** A checkpoint must record their start before they are made. */
  #calls: (Call & { task: StepTask })[] = [];
  #results: TaskResult[] = [];

  constructor(ctx: Context, executionId: string, wake: () => void) {
    this.#ctx = ctx;
    this.#executionId = executionId;
    this.#wake = wake;
  }

  /** No task runs, and every aborted task has reported its usage. */
  get isEmpty(): boolean {
    return this.#tasks.size === 0 && this.#running.size === 0;
  }

  get hasCalls(): boolean {
    return this.#calls.length > 0;
  }

  prepare(run: StepRun, work: StepWork, prepare: () => Promise<PreparedStep>): void {
    const aborter = new AbortController();
    const signal = AbortSignal.any([aborter.signal, this.#ctx.shutdown]);
    const task: StepTask = { run, aborter, signal, trace: new StepTrace(run, work) };
    this.#tasks.set(stepKey(run.stepId, run.item), task);
    const prepared = this.#launch(task, prepare);
    this.#preparing.add(prepared);
    void prepared.then(() => this.#preparing.delete(prepared));
  }

  /** Queues a call until a checkpoint has recorded its start. */
  queueCall(task: StepTask, call: Call): void {
    this.#tasks.set(stepKey(task.run.stepId, task.run.item), task);
    this.#calls.push({ task, ...call });
  }

  /** The reservations that the checkpoint writes. */
  get callsToOpen(): OpenCall[] {
    return this.#calls.flatMap(({ opens }) => opens ?? []);
  }

  startCalls(): void {
    this.#delayedUntil = null;
    for (const { task, call } of this.#calls.splice(0)) void this.#launch(task, () => call(task.signal));
  }

  /** Returns new results. Of an aborted task only the usage counts. */
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
    for (const { aborter } of this.#tasks.values()) aborter.abort();
    this.#tasks.clear();
    this.#calls = [];
  }

  /** Aborts all tasks, and resolves when they have reported their usage. */
  async abortAllAndWait(): Promise<void> {
    this.abortAll();
    if (this.#running.size > 0) await settlesWithin(ABORT_TIMEOUT_MS, Promise.allSettled(this.#running));
  }

  /** Preparing a step is mostly quick. One checkpoint then records its start and earlier ends: one commit less for each step. */
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

  #run({ trace, signal }: StepTask, work: () => Promise<PreparedStep>): Promise<PreparedStep> {
    return trace
      .within(() => retryWhileUnavailable(signal, work))
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
