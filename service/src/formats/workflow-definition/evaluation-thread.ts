import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { EvaluationError } from "./evaluation-error.ts";

/**
 * CPU time, so that waiting for the processor does not count. It ends what cel-cost.ts does not count. The cost limit
 * comes first, because its message is the same on any machine.
 */
const MAX_CPU_MS = 200;
/** Wall-clock time of a request. */
const MAX_WAIT_MS = 2_000;
/** The thread's own heap: far more than the time limit allows to fill. */
const MAX_HEAP_MB = 256;
const MAX_YOUNG_HEAP_MB = 32;
const NOT_STARTED = -1;

export interface ThreadData {
  /** When the thread started the evaluation. The thread writes it, this side reads it. */
  clock: Float64Array;
  /** Whether the clock is CPU time. Node 22 cannot read the CPU time of another thread: there it is wall-clock time. */
  isCpuTime: boolean;
}

export interface EvaluationRequest {
  expression: string;
  /** JSON text. */
  bindings: string;
}

export type EvaluationResponse = { value: unknown } | { reason: string };

interface PendingEvaluation {
  resolve(value: unknown): void;
  reject(error: Error): void;
  until: number;
}

/** Evaluates one expression at a time. Stopping an expression stops the thread. */
export class EvaluationThread {
  readonly #clock = new Float64Array(new SharedArrayBuffer(8));
  readonly #isCpuTime = "cpuUsage" in Worker.prototype;
  readonly #worker: Worker;
  readonly #isReady: Promise<unknown>;
  #pending: PendingEvaluation | null = null;
  #timer: NodeJS.Timeout | undefined;
  #hasEnded = false;

  constructor() {
    this.#worker = new Worker(new URL("./evaluate.worker.ts", import.meta.url), {
      workerData: { clock: this.#clock, isCpuTime: this.#isCpuTime } satisfies ThreadData,
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB, maxYoungGenerationSizeMb: MAX_YOUNG_HEAP_MB },
      // The thread needs no settings and must not see secrets.
      env: {},
      execArgv: [],
    });
    this.#isReady = new Promise((resolve) => this.#worker.once("message", resolve)).then(() =>
      this.#worker.on("message", (answer: EvaluationResponse) => this.#settle(answer)),
    );
    this.#worker.on("error", (error) => this.#end(isOutOfMemory(error) ? tooMuchMemory() : error));
    this.#worker.on("exit", () => this.#end(new Error("a thread that evaluates expressions has ended")));
    this.#worker.unref();
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Throws an EvaluationError, or the error that kept the thread from starting. */
  async evaluate(question: EvaluationRequest): Promise<unknown> {
    if (this.#hasEnded) throw new Error("a thread that has ended was asked");
    // A pending evaluation keeps the process alive; an idle thread does not.
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject, until: Number.POSITIVE_INFINITY };
      void this.#isReady.then(() => this.#post(question));
    });
  }

  /** Rejects a pending evaluation. */
  async close(): Promise<void> {
    this.#end(new EvaluationError("was given up, because the service shuts down"));
    await this.#worker.terminate();
  }

  #post(question: EvaluationRequest): void {
    if (!this.#pending) return;
    this.#pending.until = performance.now() + MAX_WAIT_MS;
    this.#clock[0] = NOT_STARTED;
    this.#worker.postMessage(question);
    this.#scheduleCheck(MAX_CPU_MS);
  }

  #scheduleCheck(ms: number): void {
    this.#timer = setTimeout(() => this.#checkLimits(), ms);
  }

  /** A response comes before the first check, almost always. */
  async #checkLimits(): Promise<void> {
    const asked = this.#pending;
    if (!asked) return;
    const leftMs = MAX_CPU_MS - (await this.#readUsedMs(asked.until));
    if (this.#pending !== asked) return;
    if (leftMs > 0 && performance.now() < asked.until) this.#scheduleCheck(leftMs + 1);
    else this.#end(new EvaluationError(`takes more than ${MAX_CPU_MS} ms`));
  }

  /** A thread that does not report its CPU time is inside a single operation. */
  async #readUsedMs(until: number): Promise<number> {
    const tooLate = sleep(Math.max(0, until - performance.now()), null, { ref: false });
    const nowMs = this.#isCpuTime ? await Promise.race([this.#readCpuMs(), tooLate]) : wallClockMs();
    const [begunAt = NOT_STARTED] = this.#clock;
    return nowMs !== null && begunAt !== NOT_STARTED ? nowMs - begunAt : 0;
  }

  /** null: the thread has ended. */
  async #readCpuMs(): Promise<number | null> {
    const usage = await this.#worker.cpuUsage().catch(() => null);
    return usage && toMs(usage);
  }

  #settle(answer: EvaluationResponse): void {
    const asked = this.#takePending();
    this.#worker.unref();
    if ("value" in answer) asked?.resolve(answer.value);
    else asked?.reject(new EvaluationError(answer.reason));
  }

  #end(why: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#takePending()?.reject(why as Error);
    this.#worker.unref();
    void this.#worker.terminate();
  }

  #takePending(): PendingEvaluation | null {
    clearTimeout(this.#timer);
    const asked = this.#pending;
    this.#pending = null;
    return asked;
  }
}

export const toMs = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;
/** The same clock in all threads. */
export const wallClockMs = () => performance.timeOrigin + performance.now();

const isOutOfMemory = (error: unknown) => (error as { code?: unknown }).code === "ERR_WORKER_OUT_OF_MEMORY";
const tooMuchMemory = () => new EvaluationError(`needs more than ${MAX_HEAP_MB} MB of memory`);
