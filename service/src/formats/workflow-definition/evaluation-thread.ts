import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { EvaluationError } from "./evaluation-error.ts";

/**
 * Of the processor's time: whoever has to wait for the processor has not used any. It ends what cel-meter.ts does not
 * count. That comes first, because who is told to split an expression shall be told so on a slow day and on a fast one.
 */
const MAX_CPU_MS = 200;
/** From the question to its answer, whatever the processor does meanwhile. */
const MAX_WAIT_MS = 2_000;
/** Of the thread's own heap: far more than that time can fill. */
const MAX_HEAP_MB = 256;
const MAX_YOUNG_HEAP_MB = 32;
const NOT_STARTED = -1;

export interface ThreadData {
  /** At which of its milliseconds the thread began to evaluate; it is written there and read here. */
  clock: Float64Array;
  /** Whether those are of the processor. Node 22 cannot tell of another thread: there they are of the clock on the wall. */
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

/** A thread that evaluates one expression at a time, until one has to be stopped, and the thread with it. */
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
      // It needs no settings, and shall not see any secret.
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

  /** Throws an EvaluationError, or what kept the thread from starting. */
  async evaluate(question: EvaluationRequest): Promise<unknown> {
    if (this.#hasEnded) throw new Error("a thread that has ended was asked");
    // What waits for an answer keeps the process; a thread that has nothing to do does not.
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject, until: Number.POSITIVE_INFINITY };
      void this.#isReady.then(() => this.#post(question));
    });
  }

  /** What it was asked is not answered any more. */
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

  /** An answer comes sooner, almost always. */
  async #checkLimits(): Promise<void> {
    const asked = this.#pending;
    if (!asked) return;
    const leftMs = MAX_CPU_MS - (await this.#readUsedMs(asked.until));
    if (this.#pending !== asked) return;
    if (leftMs > 0 && performance.now() < asked.until) this.#scheduleCheck(leftMs + 1);
    else this.#end(new EvaluationError(`takes more than ${MAX_CPU_MS} ms`));
  }

  /** A thread that does not even say how long it has run is inside a single operation. */
  async #readUsedMs(until: number): Promise<number> {
    const tooLate = sleep(Math.max(0, until - performance.now()), null, { ref: false });
    const nowMs = this.#isCpuTime ? await Promise.race([this.#readCpuMs(), tooLate]) : wallClockMs();
    const begunAt = this.#clock[0]!;
    return nowMs !== null && begunAt !== NOT_STARTED ? nowMs - begunAt : 0;
  }

  /** null: it has ended. */
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
/** The same for all threads. */
export const wallClockMs = () => performance.timeOrigin + performance.now();

const isOutOfMemory = (error: unknown) => (error as { code?: unknown }).code === "ERR_WORKER_OUT_OF_MEMORY";
const tooMuchMemory = () => new EvaluationError(`needs more than ${MAX_HEAP_MB} MB of memory`);
