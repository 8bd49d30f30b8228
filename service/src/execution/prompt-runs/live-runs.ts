import { GrowingText } from "../../core/growing-text.ts";
import { type AnswerAllocation, AnswerMemory } from "../../integrations/ai-providers/answer-memory.ts";
import type { Notifications } from "../../platform/db/notifications.ts";
import type { AccountCancelReason } from "../executions/queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** The prompt runs of this process that have not ended. */
    liveRuns: LiveRuns;
  }
}

/** Why a run is aborted before its provider has answered. */
export type AbortReason = "client_gone" | "canceled" | AccountCancelReason;

/** The event that ends a run, with the result or the error of a response. */
export interface EndEvent {
  type: "execution.completed" | "execution.failed";
  data: unknown;
}

/** Poll interval for the events of a remote run, in case a notification is lost. */
const POLL_MS = 1_000;

const never = new AbortController().signal;

/** In UTF-16 units: the provider's response is not read on while the client is this far behind. */
export const MAX_UNREAD = 256 * 1024;
/** The response of a stream starts after this time even without output, so that its client does not time out. */
const OPENS_AFTER_MS = 20_000;

/** A run of this process: its output so far, and the readers that wait for more. */
export class LiveRun {
  readonly id: string;
  readonly text = new GrowingText();
  endEvent: EndEvent | null = null;
  /** Resolves when the end of the run is stored that waited for the database; null: it did not wait. */
  pendingEnd: Promise<unknown> | null = null;
  /** The first reason for which the run was aborted. */
  abortReason: AbortReason | null = null;
  /** Called when another process has a reader of this run. */
  onWatch: () => void = () => {};
  readonly #aborter = new AbortController();
  readonly #memory: AnswerAllocation;
  #holders = 1;
  /** How far the slowest awaited reader has read; null: the run waits for no reader. */
  #readTo: number | null = null;
  #wakeRun: () => void = () => {};
  readonly #listeners = new Set<() => void>();

  constructor(id: string, memory: AnswerAllocation = new AnswerMemory().allocate()) {
    this.id = id;
    this.#memory = memory;
  }

  /** A slow reader needs the text after the end of the run. */
  retain(): void {
    if (this.#holders++ === 0) this.#memory.grow(this.text.length);
  }

  release(): void {
    if (--this.#holders === 0) this.#memory.release();
  }

  get hasStarted(): boolean {
    return this.text.length > 0 || this.endEvent !== null;
  }

  /** From now on the run waits for its reader. */
  enableBackpressure(): void {
    this.#readTo ??= 0;
  }

  onRead(offset: number): void {
    if (this.#readTo === null) return;
    this.#readTo = offset;
    if (!this.isAhead) this.#wakeRun();
  }

  /** Whether the unread text has reached its limit. */
  get isAhead(): boolean {
    return this.#readTo !== null && this.text.length - this.#readTo > MAX_UNREAD;
  }

  /** Resolves when the reader has caught up, or the run is aborted. */
  async waitForReader(): Promise<void> {
    while (this.isAhead && !this.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeRun = resolve;
      await promise;
    }
  }

  /** Aborts the provider call. */
  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  abort(reason: AbortReason): void {
    if (this.endEvent) return;
    this.abortReason ??= reason;
    this.#aborter.abort();
    this.#wakeRun();
  }

  /** Aborts the run when its client disconnects; null: the run continues without a client. */
  abortOn(clientGone: AbortSignal | null): void {
    if (clientGone?.aborted) this.abort("client_gone");
    clientGone?.addEventListener("abort", () => this.abort("client_gone"), { once: true });
  }

  append(piece: string): void {
    this.text.add(piece);
    // The same memory budget counts the provider's response, which has grown as much.
    this.#memory.grow(piece.length);
    this.#wakeReaders();
  }

  end(event: EndEvent): void {
    this.endEvent = event;
    this.#wakeReaders();
  }

  /** Calls `listener` at each output, at the end, and when the signal aborts, until the returned function is called. */
  addListener(signal: AbortSignal, listener: () => void): () => void {
    this.#listeners.add(listener);
    signal.addEventListener("abort", listener);
    return () => {
      this.#listeners.delete(listener);
      // Some signals outlive every run.
      signal.removeEventListener("abort", listener);
    };
  }

  /** Resolves with the next output or the end, or when the signal aborts. */
  waitForChange(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    const stop = this.addListener(signal, () => {
      stop();
      resolve();
    });
    return promise;
  }

  async waitForEnd(): Promise<void> {
    while (!this.endEvent) await this.waitForChange(never);
  }

  #wakeReaders(): void {
    for (const listener of this.#listeners) listener();
  }
}

/**
 * The runs of this process, by their id. Only this map has the output until the run ends; other processes send cancellations
 * as notifications.
 */
export class LiveRuns {
  readonly #runs = new Map<string, LiveRun>();
  /** Calls in flight with stored keys, of prompts and of workflows. */
  readonly callIds = new Set<string>();
  /** Readers of runs of other processes. */
  readonly #readers = new Map<string, Set<() => void>>();
  #empty = Promise.withResolvers<void>();
  readonly #answerMemory: AnswerMemory;
  opensAfterMs = OPENS_AFTER_MS;

  constructor(notifications: Notifications, answerMemory: AnswerMemory) {
    this.#answerMemory = answerMemory;
    notifications.register({
      on: {
        execution_cancel: (payload) => this.#cancel(payload),
        execution_watch: (id) => this.get(id)?.onWatch(),
        execution_move: (id) => {
          for (const resolve of this.#readers.get(id) ?? []) resolve();
        },
      },
      // Missed cancellations are polled (cancel-execution.ts), and so are the events of remote runs.
      clear() {},
    });
  }

  /** The payload is an id, followed by a reason when the owner did not request the cancellation. */
  #cancel(payload: string): void {
    const [id = "", reason = "canceled"] = payload.split(" ");
    this.get(id)?.abort(reason as AbortReason);
  }

  get(id: string): LiveRun | undefined {
    return this.#runs.get(id);
  }

  get ids(): string[] {
    return [...this.#runs.keys()];
  }

  /** Whether the answers in memory leave no room for another. */
  get isFull(): boolean {
    return this.#answerMemory.isFull;
  }

  begin(id: string): LiveRun {
    const run = new LiveRun(id, this.#answerMemory.allocate());
    this.#runs.set(id, run);
    return run;
  }

  remove(id: string): void {
    this.#runs.get(id)?.release();
    this.#runs.delete(id);
    if (this.#runs.size > 0) return;
    this.#empty.resolve();
    this.#empty = Promise.withResolvers();
  }

  /** Resolves when a run of another process may have more to read, or the signal aborts. */
  async waitForRemoteChange(id: string, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const readers = this.#readers.get(id) ?? new Set();
    this.#readers.set(id, readers.add(resolve));
    const signalOrTimeout = AbortSignal.any([signal, AbortSignal.timeout(POLL_MS)]);
    signalOrTimeout.addEventListener("abort", () => resolve(), { once: true });
    if (!signalOrTimeout.aborted) await promise;
    readers.delete(resolve);
    if (readers.size === 0) this.#readers.delete(id);
  }

  /** Resolves when no run is left: some continue after their client has disconnected. */
  async waitUntilEmpty(): Promise<void> {
    if (this.#runs.size > 0) await this.#empty.promise;
  }
}
