import { EvaluationError } from "./evaluation-error.ts";
import { type EvaluationRequest, EvaluationThread } from "./evaluation-thread.ts";
import { isObject } from "./issue-order.ts";

/** JSON text of what an expression reads, in characters. */
const MAX_BINDINGS_CHARACTERS = 2 * 1024 * 1024;
const MAX_EXPRESSION_CHARACTERS = 2_048;
/** One for whoever has expressions that must be stopped, one for everybody else. */
const MAX_THREADS = 2;
/** Then a thread is ended, with the 50 MB that it takes. */
const IDLE_MS = 60_000;

/** What an expression may read, as values of JSON. */
export interface Bindings {
  input: unknown;
  /** Of the steps that have ended; null of one that was skipped. */
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
 * Evaluates expressions that `checkWorkflow` took, in threads of their own: each has some work to do and 200 ms of
 * the processor, and is stopped then with its thread. Threads are started when they are needed, ended a minute after that, and keep no process alive. Whose expressions
 * they are take turns, and have one thread at most, so that nobody waits for all of somebody else's.
 */
export class Evaluator {
  /** By whose they are, in the order in which their turns come. */
  readonly #waiting = new Map<string, EvaluationJob[]>();
  readonly #running = new Set<string>();
  readonly #idle = new Map<EvaluationThread, NodeJS.Timeout>();
  readonly #all = new Set<EvaluationThread>();
  readonly #idleMs: number;
  #isClosed = false;

  constructor({ idleMs = IDLE_MS }: { idleMs?: number } = {}) {
    this.#idleMs = idleMs;
  }

  /** How many threads there are just now. */
  get threads(): number {
    return this.#all.size;
  }

  /**
   * The value, as JSON has it: whole numbers, and times and durations as text. `whose` shares turns, such as the id of
   * the account that runs it. Throws an EvaluationError with the `reason` why there is no value.
   */
  evaluate(expression: string, bindings: Bindings, whose: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const jobs = this.#waiting.get(whose) ?? [];
      this.#waiting.set(whose, jobs);
      jobs.push({ expression, bindings, resolve, reject });
      this.#runNext();
    });
  }

  /** What runs or waits is rejected. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#runNext();
    await Promise.all([...this.#all].map((thread) => thread.close()));
  }

  #runNext(): void {
    if (this.#isClosed) this.#rejectWaiting();
    for (const [whose, jobs] of this.#waiting) {
      if (this.#running.has(whose)) continue;
      const thread = this.#findThread();
      if (!thread) return;
      this.#waiting.delete(whose);
      const job = jobs.shift()!;
      // Behind all others, when they have more.
      if (jobs.length > 0) this.#waiting.set(whose, jobs);
      void this.#run(job, whose, thread);
    }
  }

  async #run(job: EvaluationJob, whose: string, thread: EvaluationThread): Promise<void> {
    this.#running.add(whose);
    try {
      job.resolve(await thread.evaluate(toEvaluationRequest(job)));
    } catch (error) {
      job.reject(error);
    }
    this.#running.delete(whose);
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
    // The one that worked last: the other may end.
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
    const issue = new EvaluationError("was given up, because the service shuts down");
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

/** Anything but `input.name`. */
const WHOLE_INPUT = /\binput\b(?!\.[A-Za-z_])/;

/** What does not stand in an expression by name cannot be read by it, and need not be sent; but for a step named with `\x61`. */
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
