import { required } from "../../core/required.ts";
import { readText } from "./direct-read.ts";
import { EvaluationError } from "./evaluation-error.ts";
import { type EvaluationRequest, EvaluationThread } from "./evaluation-thread.ts";
import { isObject } from "./issue-order.ts";

/** JSON text. */
const MAX_BINDINGS_CHARACTERS = 2 * 1024 * 1024;
const MAX_EXPRESSION_CHARACTERS = 2_048;
/** While one thread runs an expression up to its limit, the other serves other accounts. */
const MAX_THREADS = 2;
/** An idle thread uses about 50 MB. */
const IDLE_MS = 60_000;

/** JSON values. */
export interface Bindings {
  input: unknown;
  /** The output of a skipped step is null. */
  steps: Readonly<Record<string, { output: unknown }>>;
  item?: unknown;
  index?: number;
}

interface EvaluationJob {
  expression: string;
  bindings: Bindings;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/**
 * Evaluates expressions in worker threads with a cost limit and 200 ms of CPU time. Threads start on demand and end after an idle minute.
 * Accounts take turns and use one thread at most. An expression that only reads a text needs no thread.
 */
export class Evaluator {
  /** By account, in the order of their turns. */
  readonly #waiting = new Map<string, EvaluationJob[]>();
  readonly #running = new Set<string>();
  readonly #idle = new Map<EvaluationThread, NodeJS.Timeout>();
  readonly #all = new Set<EvaluationThread>();
  readonly #idleMs: number;
  #isClosed = false;

  constructor({ idleMs = IDLE_MS }: { idleMs?: number } = {}) {
    this.#idleMs = idleMs;
  }

  get threads(): number {
    return this.#all.size;
  }

  /** Returns times and durations as text. `accountId` is for fair turns. Throws an EvaluationError. */
  evaluate(expression: string, bindings: Bindings, accountId: string): Promise<unknown> {
    const text = this.#isClosed ? undefined : readText(expression, bindings);
    if (text !== undefined) return Promise.resolve(text);
    return new Promise((resolve, reject) => {
      const jobs = this.#waiting.get(accountId) ?? [];
      this.#waiting.set(accountId, jobs);
      jobs.push({ expression, bindings, resolve, reject });
      this.#runNext();
    });
  }

  /** Rejects running and waiting evaluations. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#runNext();
    await Promise.all([...this.#all].map((thread) => thread.close()));
  }

  #runNext(): void {
    if (this.#isClosed) this.#rejectWaiting();
    for (const [accountId, jobs] of this.#waiting) {
      if (this.#running.has(accountId)) continue;
      const thread = this.#findThread();
      if (!thread) return;
      this.#waiting.delete(accountId);
      const job = required(jobs.shift(), "a waiting job");
      // Back to the end of the queue if the account has more.
      if (jobs.length > 0) this.#waiting.set(accountId, jobs);
      void this.#run(job, accountId, thread);
    }
  }

  async #run(job: EvaluationJob, accountId: string, thread: EvaluationThread): Promise<void> {
    this.#running.add(accountId);
    try {
      job.resolve(await thread.evaluate(toEvaluationRequest(job)));
    } catch (error) {
      job.reject(error);
    }
    this.#running.delete(accountId);
    this.#release(thread);
    this.#runNext();
  }

  #release(thread: EvaluationThread): void {
    const timer = setTimeout(() => this.#end(thread), this.#idleMs);
    this.#idle.set(thread, timer.unref());
  }

  #end(thread: EvaluationThread): void {
    this.#reserve(thread);
    this.#all.delete(thread);
    void thread.close();
  }

  #reserve(thread: EvaluationThread): void {
    clearTimeout(this.#idle.get(thread));
    this.#idle.delete(thread);
  }

  #findThread(): EvaluationThread | null {
    for (const thread of this.#all) if (thread.hasEnded) this.#end(thread);
    // The most recently used thread, so that the other one can end.
    const idle = [...this.#idle.keys()].at(-1);
    if (idle) {
      this.#reserve(idle);
      return idle;
    }
    if (this.#all.size === MAX_THREADS) return null;
    const thread = new EvaluationThread();
    this.#all.add(thread);
    return thread;
  }

  #rejectWaiting(): void {
    const issue = new EvaluationError("was canceled because the service is shutting down");
    for (const jobs of this.#waiting.values()) for (const job of jobs) job.reject(issue);
    this.#waiting.clear();
  }
}

function toEvaluationRequest({ expression, bindings }: EvaluationJob): EvaluationRequest {
  if (expression.length > MAX_EXPRESSION_CHARACTERS) {
    throw new EvaluationError(`is longer than ${MAX_EXPRESSION_CHARACTERS} characters`);
  }
  const text = stringifyBindings(selectReadBindings(expression, bindings));
  if (text.length > MAX_BINDINGS_CHARACTERS) {
    throw new EvaluationError(`reads steps and inputs of more than ${MAX_BINDINGS_CHARACTERS} characters`);
  }
  return { expression, bindings: text };
}

function stringifyBindings(bindings: Bindings): string {
  try {
    return JSON.stringify(bindings);
  } catch (error) {
    if (error instanceof RangeError) throw new EvaluationError("reads a value that is nested too deep");
    throw error;
  }
}

/** Matches everything but `input.name`. */
const WHOLE_INPUT = /\binput\b(?!\.[A-Za-z_])/;

/** Sends only named values: an expression cannot read others. A name may be escaped as `\x61`. */
function selectReadBindings(expression: string, { input, steps, ...others }: Bindings): Bindings {
  const isWhole = WHOLE_INPUT.test(expression) || !isObject(input);
  return {
    ...others,
    input: isWhole ? input : selectNamed(expression, input),
    steps: expression.includes("\\") ? steps : selectNamed(expression, steps),
  };
}

const selectNamed = <Value>(expression: string, values: Readonly<Record<string, Value>>) =>
  Object.fromEntries(Object.entries(values).filter(([name]) => expression.includes(name)));
