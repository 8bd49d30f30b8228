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

/** Why a run is given up before its provider has answered. */
export type AbortReason = "client_gone" | "canceled" | AccountCancelReason;

/** The event that ends a run, and what an answer in its place would throw. */
export interface EndEvent {
  type: "execution.completed" | "execution.failed";
  data: unknown;
}

/** Without a notice. */
const POLL_MS = 1_000;

const never = new AbortController().signal;

/** In UTF-16 units: a run is not read of its provider while its reader is so far behind. */
export const MAX_UNREAD = 256 * 1024;
/** In milliseconds: a stream whose run says nothing is opened all the same, so that its reader hears that it is alive. */
const OPENS_AFTER_MS = 20_000;

/** A run that this process carries out: what it has said so far, and who waits for more. */
export class LiveRun {
  readonly id: string;
  readonly text = new GrowingText();
  endEvent: EndEvent | null = null;
  /** Resolves when its end is recorded that was held while the database was away; null: it was not held. */
  pendingEnd: Promise<unknown> | null = null;
  /** Whoever gave it up first. */
  abortReason: AbortReason | null = null;
  /** Called when another process has a reader of it. */
  onWatch: () => void = () => {};
  readonly #aborter = new AbortController();
  readonly #held: AnswerAllocation;
  #holders = 1;
  /** How much the reader has taken whom the run waits for; null: it waits for nobody. */
  #readTo: number | null = null;
  #wakeRun: () => void = () => {};
  readonly #waiting = new Set<() => void>();

  constructor(id: string, held: AnswerAllocation = new AnswerMemory().allocate()) {
    this.id = id;
    this.#held = held;
  }

  /** A reader holds its text after the run has ended, too, however slow they are. */
  retain(): void {
    if (this.#holders++ === 0) this.#held.grow(this.text.length);
  }

  release(): void {
    if (--this.#holders === 0) this.#held.release();
  }

  get hasStarted(): boolean {
    return this.text.length > 0 || this.endEvent !== null;
  }

  /** From now on the run goes no faster than its reader. */
  enableBackpressure(): void {
    this.#readTo ??= 0;
  }

  onRead(place: number): void {
    if (this.#readTo === null) return;
    this.#readTo = place;
    if (!this.isAhead) this.#wakeRun();
  }

  /** What its reader has not taken is as much as may be held for them. */
  get isAhead(): boolean {
    return this.#readTo !== null && this.text.length - this.#readTo > MAX_UNREAD;
  }

  /** Resolves when its reader has come nearer, or the run was given up. */
  async waitForReader(): Promise<void> {
    while (this.isAhead && !this.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wakeRun = resolve;
      await promise;
    }
  }

  /** Aborts when the run is given up. */
  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  abort(reason: AbortReason): void {
    if (this.endEvent) return;
    this.abortReason ??= reason;
    this.#aborter.abort();
    this.#wakeRun();
  }

  /** Nobody waits for it once that aborts; null: it goes on without them. */
  abortOn(clientGone: AbortSignal | null): void {
    if (clientGone?.aborted) this.abort("client_gone");
    clientGone?.addEventListener("abort", () => this.abort("client_gone"), { once: true });
  }

  append(piece: string): void {
    this.text.add(piece);
    // The provider's answer has grown as much, within what is left.
    this.#held.grow(piece.length);
    this.#wakeReaders();
  }

  end(ending: EndEvent): void {
    this.endEvent = ending;
    this.#wakeReaders();
  }

  /** Resolves with the next word or the end, or when the signal aborts. */
  waitForChange(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    // For each word of each stream: a `finally` would be two promises more.
    const wake = () => {
      this.#waiting.delete(wake);
      // Some signals outlive every run.
      signal.removeEventListener("abort", wake);
      resolve();
    };
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake);
    return promise;
  }

  async waitForEnd(): Promise<void> {
    while (!this.endEvent) await this.waitForChange(never);
  }

  #wakeReaders(): void {
    for (const resolve of this.#waiting) resolve();
  }
}

/**
 * The runs of this process, by their id. What is said is kept here until the run has ended, and nowhere else; other
 * processes tell of cancels by a notice.
 */
export class LiveRuns {
  readonly #runs = new Map<string, LiveRun>();
  /** Calls with stored keys that are under way here, of prompts and of workflows. */
  readonly callIds = new Set<string>();
  /** Readers of runs of other processes. */
  readonly #readers = new Map<string, Set<() => void>>();
  #empty = Promise.withResolvers<void>();
  readonly #answerMemory: AnswerMemory;
  opensAfterMs = OPENS_AFTER_MS;

  constructor(notices: Notifications, answerMemory: AnswerMemory) {
    this.#answerMemory = answerMemory;
    notices.register({
      on: {
        execution_cancel: (payload) => this.#cancel(payload),
        execution_watch: (id) => this.get(id)?.onWatch(),
        execution_move: (id) => {
          for (const resolve of this.#readers.get(id) ?? []) resolve();
        },
      },
      // A cancel that was missed is looked for (cancel.ts), and readers look again without a notice.
      clear() {},
    });
  }

  /** An id, and the reason where its owner did not ask. */
  #cancel(payload: string): void {
    const [id, reason = "canceled"] = payload.split(" ");
    this.get(id!)?.abort(reason as AbortReason);
  }

  get(id: string): LiveRun | undefined {
    return this.#runs.get(id);
  }

  get ids(): string[] {
    return [...this.#runs.keys()];
  }

  /** The answers that are held here leave no room for another. */
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
    const over = AbortSignal.any([signal, AbortSignal.timeout(POLL_MS)]);
    over.addEventListener("abort", () => resolve(), { once: true });
    if (!over.aborted) await promise;
    readers.delete(resolve);
    if (readers.size === 0) this.#readers.delete(id);
  }

  /** Resolves when nothing runs any more: some go on although nobody waits for them. */
  async waitUntilEmpty(): Promise<void> {
    if (this.#runs.size > 0) await this.#empty.promise;
  }
}
