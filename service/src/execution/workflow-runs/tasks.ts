import type { Context } from "../../core/context.ts";
import { retryWhileAway } from "../../platform/db/database.ts";
import type { OpenCall } from "../provider-keys/provider-calls.ts";
import { comesWithin, SOON_MS } from "./checkpoint-delay.ts";
import type { Place } from "./next-steps.ts";
import { keyOf, type StepRun, type Work } from "./run-state.ts";
import type { Prepared } from "./step-result.ts";
import { StepTrace } from "./trace.ts";

/** A call that was aborted ends at once, unless somebody does not listen. */
const ABORT_MS = 1_000;

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
  /** All that has begun and has not ended, given up or not. */
  readonly #running = new Set<Promise<void>>();
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

  /** Nothing is under way, and what was given up has said what it used. */
  get isEmpty(): boolean {
    return this.#tasks.size === 0 && this.#running.size === 0;
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

  /** What came of tasks since it was last taken. Of those that were given up meanwhile only what they have used counts. */
  *take(): Generator<Result> {
    for (const result of this.#results.splice(0)) {
      const { task, prepared } = result;
      const { stepId, item } = task.run;
      if (this.#tasks.get(keyOf(stepId, item)) === task) {
        this.#tasks.delete(keyOf(stepId, item));
        yield result;
      } else if ("facts" in prepared && prepared.facts) {
        yield { task, prepared: { kind: "given_up", facts: prepared.facts } };
      }
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
    this.#tasks.clear();
    this.#calls = [];
  }

  /** Gives up all, and resolves when it is known what that has used. */
  async giveUpAndCount(): Promise<void> {
    this.giveUpAll();
    if (this.#running.size > 0) await comesWithin(ABORT_MS, Promise.allSettled(this.#running));
  }

  /** What begins is mostly known at once, and is then written in one go with what had ended: a commit less for each step. */
  async comeSoon(): Promise<boolean> {
    if (this.#preparing.size === 0) return false;
    this.#heldBackUntil ??= performance.now() + SOON_MS;
    const left = this.#heldBackUntil - performance.now();
    return left > 0 && comesWithin(left, Promise.all(this.#preparing));
  }

  #launch(task: Task, work: () => Promise<Prepared>): Promise<void> {
    const running: Promise<void> = this.#run(task, work).then((prepared) => {
      this.#running.delete(running);
      task.trace.cameTo(prepared);
      this.#results.push({ task, prepared });
      this.#ring();
    });
    this.#running.add(running);
    return running;
  }

  #run({ trace, stop }: Task, work: () => Promise<Prepared>): Promise<Prepared> {
    const over = AbortSignal.any([stop.signal, this.#ctx.shutdown]);
    return trace
      .within(() => retryWhileAway(over, work))
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
      });
  }
}
