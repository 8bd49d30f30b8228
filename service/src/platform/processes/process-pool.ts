import cluster, { type Worker } from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";
import { Channel, type Handlers, PeerLost } from "./channel.ts";

export type ProcessRole = "api" | "worker";

export interface ProcessName {
  name: string;
  role: ProcessRole;
}

export interface PoolOptions {
  processes: ProcessName[];
  /** The program, which calls `online` when it can be called, and answers `start` when it is ready. */
  program: string;
  programArguments: string[];
  /** What each process may ask the supervisor; `name` is the asking one. */
  handlersFor(name: ProcessName): Handlers;
  /** The input of `start`. */
  startInput(name: ProcessName): object;
  report(text: string): void;
  /** A process ended without a request to end. */
  onLost(name: ProcessName): void;
}

interface Child {
  worker: Worker;
  channel: Channel;
  /** Earlier messages are lost. */
  online: Promise<void>;
  isReady: boolean;
  readyAt: number;
  /** Resolves with the exit code or signal. */
  ended: Promise<string>;
}

/** The place of a process; at most one child in it has not been told to end. */
interface Place extends ProcessName {
  child: Child | null;
  /** Of any kind, in a row: they lengthen the pause before the next start. */
  failures: number;
  /** Of starts alone, in a row. */
  failedStarts: number;
  isRestarting: boolean;
}

/** A start that fails this often in a row, while no other process of its role runs, ends the service. */
const MAX_FAILED_STARTS = 5;
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 30_000;
/** After this time, an end is no consequence of the start. */
const STABLE_MS = 30_000;
/** A process that is replaced ends what it has begun; a stream may take minutes. */
const RETIRE_MS = 6 * 60_000;

/** Processes that share a port, each of which is replaced when it ends. */
export class ProcessPool {
  readonly #options: PoolOptions;
  readonly #places: Place[];
  readonly #children = new Set<Child>();
  readonly #ending = new AbortController();
  readonly #failed = Promise.withResolvers<never>();
  #restarting: Promise<void> | null = null;
  #isRestartWanted = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#places = options.processes.map((name) => ({
      ...name,
      ...{ child: null, failures: 0, failedStarts: 0, isRestarting: false },
    }));
    this.#failed.promise.catch(() => {});
    // The processes accept from one queue, so that none of its connections is lost with a process (docs/decisions/0083-processes.md).
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({ exec: options.program, args: options.programArguments });
  }

  /** Resolves when all processes are ready. Rejects at once when one reports why it cannot start. */
  async start(): Promise<void> {
    await Promise.all(this.#places.map((place) => this.#keepStarting(place, true)));
  }

  /** Rejects when the processes of a role cannot be started any more. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  listReady(role?: ProcessRole): string[] {
    return this.#places
      .filter((place) => (role === undefined || place.role === role) && place.child?.isReady)
      .map(({ name }) => name);
  }

  /** Asks one process; rejects while it is not ready. */
  async call<Value>(name: string, method: string, input: unknown, timeoutMs: number | null): Promise<Value> {
    const child = this.#places.find((place) => place.name === name)?.child;
    if (!child?.isReady) throw new PeerLost(`the process ${name} does not run`);
    return child.channel.call<Value>(method, input, timeoutMs);
  }

  /** Replaces each process in turn; the old one answers until the new one is ready. A signal meanwhile adds another turn. */
  restart(): Promise<void> {
    this.#isRestartWanted = true;
    this.#restarting ??= this.#restartAll().finally(() => {
      this.#restarting = null;
    });
    return this.#restarting;
  }

  /** Lets all processes end what they have begun; kills those that take longer. */
  async end(timeoutMs: number): Promise<void> {
    this.#ending.abort();
    for (const { channel } of this.#children) void channel.call("end", null, null).catch(() => {});
    const timer = setTimeout(() => this.#killAll(), timeoutMs);
    await Promise.all([...this.#children].map(({ ended }) => ended));
    clearTimeout(timer);
  }

  #killAll(): void {
    for (const { worker } of this.#children) worker.process.kill("SIGKILL");
  }

  async #restartAll(): Promise<void> {
    while (this.#isRestartWanted && !this.#ending.signal.aborted) {
      this.#isRestartWanted = false;
      this.#options.report("rolling restart begins");
      const hasAll = await this.#restartEach();
      this.#options.report(
        hasAll
          ? "rolling restart: all processes are new"
          : "rolling restart stopped: the other processes stay as they are",
      );
    }
  }

  async #restartEach(): Promise<boolean> {
    for (const place of this.#places) {
      // A process that has just died is being replaced anyway.
      if (place.child === null) continue;
      if (this.#ending.signal.aborted || !(await this.#restartOne(place))) return false;
    }
    return true;
  }

  async #restartOne(place: Place): Promise<boolean> {
    place.isRestarting = true;
    try {
      const old = place.child;
      const next = await this.#start(place);
      place.child = next;
      if (old) await this.#retire(place, old);
      return true;
    } catch (error) {
      this.#options.report(`${place.name} did not start: ${(error as Error).message}`);
      return false;
    } finally {
      place.isRestarting = false;
      // One of the two may have ended meanwhile.
      if (place.child && !this.#children.has(place.child)) this.#replace(place);
    }
  }

  async #retire({ name }: Place, old: Child): Promise<void> {
    const timer = setTimeout(() => old.worker.process.kill("SIGKILL"), RETIRE_MS);
    old.channel.call("retire", null, null).catch(() => {});
    await Promise.race([old.ended, this.#aborted()]);
    clearTimeout(timer);
    this.#options.report(`${name} is replaced`);
  }

  #aborted(): Promise<void> {
    return new Promise((resolve) => this.#ending.signal.addEventListener("abort", () => resolve()));
  }

  #replace(place: Place): void {
    place.child = null;
    this.#keepStarting(place, false).catch((error) => {
      if (!this.#ending.signal.aborted) this.#failed.reject(error);
    });
  }

  /** Starts the process of a place until it is ready. */
  async #keepStarting(place: Place, isFirstStart: boolean): Promise<void> {
    const { signal } = this.#ending;
    for (;;) {
      if (place.failures > 0) await sleep(pauseAfter(place.failures), null, { signal });
      signal.throwIfAborted();
      try {
        place.child = await this.#start(place);
        place.failedStarts = 0;
        return;
      } catch (error) {
        signal.throwIfAborted();
        // What the process reported itself does not change by trying again at once.
        if (isFirstStart && !(error instanceof PeerLost)) throw error;
        place.failures++;
        place.failedStarts++;
        this.#options.report(`${place.name} did not start: ${(error as Error).message}`);
        if (place.failedStarts >= MAX_FAILED_STARTS && this.listReady(place.role).length === 0)
          throw new Error(
            `The process ${place.name} failed to start ${place.failedStarts} times in a row: ${(error as Error).message}`,
          );
      }
    }
  }

  /** Resolves when the new process is ready. */
  async #start(place: Place): Promise<Child> {
    const child = this.#fork(place);
    try {
      await Promise.race([child.online, child.ended]);
      await child.channel.call("start", this.#options.startInput(place), null);
    } catch (error) {
      child.worker.process.kill("SIGKILL");
      await child.ended;
      throw error;
    }
    child.isReady = true;
    child.readyAt = performance.now();
    return child;
  }

  #fork(place: Place): Child {
    const worker = cluster.fork();
    const { promise: online, resolve: onOnline } = Promise.withResolvers<void>();
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    const channel = new Channel(worker, { ...this.#options.handlersFor(place), online: () => onOnline() });
    const child: Child = { worker, channel, online, isReady: false, readyAt: 0, ended };
    this.#children.add(child);
    const onEnd = (how: string) => {
      this.#children.delete(child);
      channel.close(`it ended (${how})`);
      resolve(how);
      this.#onEnd(place, child, how);
    };
    worker.once("exit", (code: number | null, signal: string | null) => onEnd(signal ?? `code ${code}`));
    // No memory or no process left: there is no exit. A message that a dying process does not get is an error, too.
    worker.on("error", (error) => {
      if (worker.process.pid === undefined) onEnd(error.message);
    });
    return child;
  }

  #onEnd(place: Place, child: Child, how: string): void {
    if (place.child !== child || this.#ending.signal.aborted) return;
    const age = performance.now() - child.readyAt;
    place.failures = age > STABLE_MS ? 0 : place.failures + 1;
    this.#options.onLost(place);
    this.#options.report(`${place.name} ended (${how}) and is started again`);
    if (!place.isRestarting) this.#replace(place);
  }
}

const pauseAfter = (failures: number) => Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
