import type { OpenCall } from "../ai/provider-calls.ts";
import type { Context } from "../context.ts";
import type { Prepared } from "./outcome.ts";
import type { Place } from "./plan.ts";
import { comesWithin, SOON_MS } from "./soon.ts";
import { keyOf, type StepRun, type Work } from "./state.ts";
import { StepTrace } from "./trace.ts";

type Call = Extract<Prepared, { kind: "call" }>;

/** Something that is under way for a step or an item. */
export interface Task {
  run: StepRun;
  stop: AbortController;
  trace: StepTrace;
}

/** What came of a task: how it ended, or what is to be called for it. */
export interface Result {
  task: Task;
  prepared: Prepared;
}

/** All that is under way for the steps of one run. It rings when something came of it. */
export class Tasks {
  readonly #ctx: Context;
  readonly #executionId: string;
  readonly #ring: () => void;
  readonly #tasks = new Map<string, Task>();
  /** What becomes of steps before anybody outside is asked. */
  readonly #preparing = new Set<Promise<void>>();
  /** In milliseconds of performance.now(). */
  #heldBackUntil: number | null = null;
  /** Written down as begun before they are called. */
  #calls: (Call & { task: Task })[] = [];
  #results: Result[] = [];

  constructor(ctx: Context, executionId: string, ring: () => void) {
    this.#ctx = ctx;
    this.#executionId = executionId;
    this.#ring = ring;
  }

  get isEmpty(): boolean {
    return this.#tasks.size === 0;
  }

  get hasCalls(): boolean {
    return this.#calls.length > 0;
  }

  /** Begins to find out what a step comes to. */
  prepare(run: StepRun, work: Work, prepare: () => Promise<Prepared>): void {
    const task: Task = { run, stop: new AbortController(), trace: new StepTrace(run, work) };
    this.#tasks.set(keyOf(run.stepId, run.item), task);
    const prepared = this.#launch(task, prepare);
    this.#preparing.add(prepared);
    void prepared.then(() => this.#preparing.delete(prepared));
  }

  /** To be called when that is written down. */
  add(task: Task, call: Call): void {
    this.#tasks.set(keyOf(task.run.stepId, task.run.item), task);
    this.#calls.push({ task, ...call });
  }

  /** What takes its part of a key's limits where it is written down. */
  get opening(): OpenCall[] {
    return this.#calls.flatMap(({ opens }) => opens ?? []);
  }

  call(): void {
    this.#heldBackUntil = null;
    for (const { task, call } of this.#calls.splice(0))
      void this.#launch(task, () => call(AbortSignal.any([task.stop.signal, this.#ctx.shutdown])));
  }

  /** What came of tasks since it was last taken. Of those that were given up meanwhile nothing counts any more. */
  *take(): Generator<Result> {
    for (const result of this.#results.splice(0)) {
      const { stepId, item } = result.task.run;
      if (this.#tasks.get(keyOf(stepId, item)) !== result.task) continue;
      this.#tasks.delete(keyOf(stepId, item));
      yield result;
    }
  }

  giveUp({ stepId, item }: Place): void {
    const key = keyOf(stepId, item);
    this.#tasks.get(key)?.stop.abort();
    this.#tasks.delete(key);
    this.#calls = this.#calls.filter(({ task }) => keyOf(task.run.stepId, task.run.item) !== key);
  }

  giveUpAll(): void {
    for (const { stop } of this.#tasks.values()) stop.abort();
  }

  /** What begins is mostly known at once, and is then written in one go with what had ended: a commit less for each step. */
  async comeSoon(): Promise<boolean> {
    if (this.#preparing.size === 0) return false;
    this.#heldBackUntil ??= performance.now() + SOON_MS;
    const left = this.#heldBackUntil - performance.now();
    return left > 0 && comesWithin(left, Promise.all(this.#preparing));
  }

  #launch(task: Task, work: () => Promise<Prepared>): Promise<void> {
    return task.trace
      .within(work)
      .catch((error): Prepared => {
        this.#ctx.log.error(
          { execution: this.#executionId, err: error },
          "a step of a workflow could not be run",
        );
        return {
          kind: "failed",
          error: { code: "INTERNAL_ERROR", message: "Something went wrong on our side." },
          isFinal: true,
        };
      })
      .then((prepared) => {
        task.trace.cameTo(prepared);
        this.#results.push({ task, prepared });
        this.#ring();
      });
  }
}
