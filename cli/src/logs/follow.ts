import { setTimeout as sleep } from "node:timers/promises";
import type { Cli } from "../cli.ts";
import { listenTo } from "../listen/account-events.ts";
import type { Column } from "../output.ts";

/** A log that grows. */
export interface Log<T> {
  /** What is new, oldest first; `limit` bounds the lines of the past, and later the requests. */
  read(limit: number): Promise<T[]>;
  /** Requests that one more `read` sends. */
  readonly cost: number;
}

interface FollowOptions<T> {
  log: Log<T>;
  columns: readonly Column<T>[];
  intervalMs: number;
  /** New lines follow events of the account: without one, the log is read less and less often. */
  isByEvents: boolean;
}

const MAX_INTERVAL_MS = 60_000;
const MAX_LINES = 100;

/** Prints new lines until Ctrl-C, with at most half of the account's remaining quota of requests. */
export async function followLog<T extends object>(cli: Cli, options: FollowOptions<T>): Promise<void> {
  const { log, columns, intervalMs, isByEvents } = options;
  const events = isByEvents ? new EventWatch(cli) : null;
  let pauseMs = intervalMs;
  let isSlow = false;
  for (;;) {
    const leastMs = Math.max(intervalMs, cli.pace.pauseMs(log.cost));
    if (leastMs > intervalMs && !isSlow)
      cli.output.report(
        `Reading every ${Math.ceil(leastMs / 1_000)} s, not every ${intervalMs / 1_000} s: ${cli.pace.describe()}.`,
      );
    isSlow = leastMs > intervalMs;
    await sleep(leastMs, undefined, { signal: cli.signal });
    const hasEvent = events ? await events.waitFor(Math.max(0, pauseMs - leastMs)) : true;
    const lines = await readOrSkip(cli, log);
    for (const line of lines) cli.output.item(line, columns);
    const isQuiet = !hasEvent && lines.length === 0;
    pauseMs = isQuiet ? Math.max(intervalMs, Math.min(pauseMs * 2, MAX_INTERVAL_MS)) : intervalMs;
  }
}

/** Other programs of the account may have used up the quota: then the next pause lasts until it is full again. */
async function readOrSkip<T>({ pace }: Cli, log: Log<T>): Promise<T[]> {
  try {
    return await log.read(Math.min(MAX_LINES, pace.maxRequests));
  } catch (error) {
    if ((error as { status?: number }).status === 429) return [];
    throw error;
  }
}

/** Waits for the account's next event. The stream is one request, however long it is open. */
class EventWatch {
  readonly #cli: Cli;
  #next = new AbortController();
  #failure: unknown;

  constructor(cli: Cli) {
    this.#cli = cli;
    void this.#listen();
  }

  /** Returns whether there was an event since the last call. */
  async waitFor(ms: number): Promise<boolean> {
    const signal = AbortSignal.any([this.#next.signal, this.#cli.signal]);
    await sleep(ms, undefined, { signal }).catch(() => {});
    this.#cli.signal.throwIfAborted();
    if (this.#failure !== undefined) throw this.#failure;
    const hasEvent = this.#next.signal.aborted;
    if (hasEvent) this.#next = new AbortController();
    return hasEvent;
  }

  async #listen(): Promise<void> {
    try {
      const stoa = await this.#cli.stoa();
      for await (const _ of listenTo(this.#cli, stoa, {})) this.#next.abort();
    } catch (error) {
      this.#failure = error;
      this.#next.abort();
    }
  }
}
