import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { compileCacheEnvironment } from "../../core/compile-cache.ts";
import { EvaluationError } from "./evaluation-error.ts";

/**
 * CPU time, so that waiting for a processor does not count. It bounds what cel-cost.ts does not count; the cost limit triggers first, with
 * the same message on any machine.
 */
const MAX_CPU_MS = 200;
/** Wall-clock time of an evaluation, including waiting for a processor. What delays the check of the limits does not count. */
const MAX_WAIT_MS = 2_000;
/** Far more than an evaluation can fill within the time limit. */
const MAX_HEAP_MB = 256;
const MAX_YOUNG_HEAP_MB = 32;
const NOT_STARTED = -1;

export interface ThreadData {
  /** The start of the evaluation, written by the thread. */
  clock: Float64Array;
  /** Node 22 cannot read the CPU time of another thread and uses wall-clock time. */
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
      env: compileCacheEnvironment(),
      execArgv: [],
    });
    this.#isReady = new Promise((resolve) => this.#worker.once("message", resolve)).then(() =>
      this.#worker.on("message", (response: EvaluationResponse) => this.#settle(response)),
    );
    this.#worker.on("error", (error) => this.#end(isOutOfMemory(error) ? tooMuchMemory() : error));
    this.#worker.on("exit", () => this.#end(new Error("a thread that evaluates expressions has ended")));
    this.#worker.unref();
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Throws an EvaluationError, or the error that stopped the thread from starting. */
  async evaluate(request: EvaluationRequest): Promise<unknown> {
    if (this.#hasEnded) throw new Error("evaluate() was called on a thread that has ended");
    // A pending evaluation keeps the process alive; an idle thread does not.
    this.#worker.ref();
    return new Promise((resolve, reject) => {
      this.#pending = { resolve, reject, until: Number.POSITIVE_INFINITY };
      void this.#isReady.then(() => this.#post(request));
    });
  }

  /** Rejects a pending evaluation. */
  async close(): Promise<void> {
    this.#end(new EvaluationError("was canceled because the service is shutting down"));
    await this.#worker.terminate();
  }

  #post(request: EvaluationRequest): void {
    if (!this.#pending) return;
    this.#pending.until = performance.now() + MAX_WAIT_MS;
    this.#clock[0] = NOT_STARTED;
    this.#worker.postMessage(request);
    this.#scheduleCheck(MAX_CPU_MS);
  }

  #scheduleCheck(ms: number): void {
    const dueAt = performance.now() + ms;
    this.#timer = setTimeout(() => this.#checkLimits(performance.now() - dueAt), ms);
  }

  /** Almost always the response comes before the first check. */
  async #checkLimits(lateMs: number): Promise<void> {
    const pending = this.#pending;
    if (!pending) return;
    // A check is late after a pause of the process, in which the thread could not go on either. If only the main thread was busy, the
    // limit of CPU time still holds.
    pending.until += lateMs;
    const leftMs = MAX_CPU_MS - (await this.#readUsedMs(pending.until));
    if (this.#pending !== pending) return;
    if (leftMs > 0 && performance.now() < pending.until) this.#scheduleCheck(leftMs + 1);
    else this.#end(new EvaluationError(`takes more than ${MAX_CPU_MS} ms`));
  }

  /** A thread that does not report its CPU time is inside a single operation. */
  async #readUsedMs(until: number): Promise<number> {
    const tooLate = sleep(Math.max(0, until - performance.now()), null, { ref: false });
    const nowMs = this.#isCpuTime ? await Promise.race([this.#readCpuMs(), tooLate]) : wallClockMs();
    const [startedAt = NOT_STARTED] = this.#clock;
    return nowMs !== null && startedAt !== NOT_STARTED ? nowMs - startedAt : 0;
  }

  async #readCpuMs(): Promise<number | null> {
    const usage = await this.#worker.cpuUsage().catch(() => null);
    return usage && toMs(usage);
  }

  #settle(response: EvaluationResponse): void {
    const pending = this.#clearPending();
    this.#worker.unref();
    if ("value" in response) pending?.resolve(response.value);
    else pending?.reject(new EvaluationError(response.reason));
  }

  #end(why: unknown): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#clearPending()?.reject(why as Error);
    this.#worker.unref();
    void this.#worker.terminate();
  }

  #clearPending(): PendingEvaluation | null {
    clearTimeout(this.#timer);
    const pending = this.#pending;
    this.#pending = null;
    return pending;
  }
}

export const toMs = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1_000;
/** The same clock in all threads. */
export const wallClockMs = () => performance.timeOrigin + performance.now();

const isOutOfMemory = (error: unknown) => (error as { code?: unknown }).code === "ERR_WORKER_OUT_OF_MEMORY";
const tooMuchMemory = () => new EvaluationError(`needs more than ${MAX_HEAP_MB} MB of memory`);
