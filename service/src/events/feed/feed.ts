import { setTimeout as sleep } from "node:timers/promises";
import type { EventType } from "@stoa/contract";
import type pg from "pg";
import type { Logger } from "pino";
import { type FeedEvent, findLastSequence, listEventsAfter } from "./feed-queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** The open event streams of this process. */
    feed: EventFeed;
  }
}

const POLL_INTERVAL_MS = 200;
/** Of one statement. */
const MAX_READERS_PER_POLL = 32;

/** Somebody who follows the events of an account: after which number, and which of them. */
export interface FeedReader {
  userId: string;
  after: number;
  types: readonly EventType[] | null;
}

/**
 * Tells the readers of this process what happens. It looks for all of them together: one number, and only when that has
 * moved the rows themselves. Who has not taken what it was given is not looked for; while nobody waits, nothing is asked.
 */
export class EventFeed {
  readonly #pool: pg.Pool;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  /** In the order in which they came to wait. */
  readonly #waiting = new Map<FeedReader, (events: FeedEvent[]) => void>();
  #isPolling = false;
  #polling: Promise<void> = Promise.resolve();

  constructor(pool: pg.Pool, log: Logger) {
    this.#pool = pool;
    this.#log = log;
  }

  /** Aborts when the process must end: every stream does, too, and goes on at another one. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#polling;
  }

  /** What comes next for a reader, as soon as there is something; nothing once the signal aborts. */
  next(reader: FeedReader, signal: AbortSignal): Promise<FeedEvent[]> {
    if (signal.aborted) return Promise.resolve([]);
    const { promise, resolve } = Promise.withResolvers<FeedEvent[]>();
    const leave = () => resolve([]);
    signal.addEventListener("abort", leave, { once: true });
    this.#waiting.set(reader, resolve);
    if (!this.#isPolling) this.#polling = this.#poll();
    return promise.finally(() => {
      this.#waiting.delete(reader);
      signal.removeEventListener("abort", leave);
    });
  }

  async #poll(): Promise<void> {
    const { signal } = this.#closing;
    this.#isPolling = true;
    while (this.#waiting.size > 0 && !signal.aborted) {
      const isBehind = await this.#pollOnce().catch((error) => {
        this.#log.warn({ err: error }, "nobody heard of events; the next look tries again");
        return false;
      });
      if (!isBehind) await sleep(POLL_INTERVAL_MS, null, { signal }).catch(() => {});
    }
    this.#isPolling = false;
  }

  /** Answers whether there may be more at once. */
  async #pollOnce(): Promise<boolean> {
    const head = await findLastSequence(this.#pool);
    const behind = [...this.#waiting.keys()]
      .filter(({ after }) => after < head)
      .slice(0, MAX_READERS_PER_POLL);
    if (behind.length === 0) return false;
    const pages = await listEventsAfter(this.#pool, behind, head);
    behind.forEach((reader, at) => {
      this.#deliver(reader, pages[at]!, head);
    });
    return true;
  }

  /** Passes on what the reader wants; it has then seen all up to the last, and without any all up to the head. */
  #deliver(reader: FeedReader, page: FeedEvent[], head: number): void {
    const take = this.#waiting.get(reader);
    if (!take) return;
    reader.after = page.at(-1)?.seq ?? head;
    const wanted = page.filter(({ body }) => body !== null);
    this.#waiting.delete(reader);
    if (wanted.length > 0) take(wanted);
    // Behind the others, so that all come to their turn.
    else this.#waiting.set(reader, take);
  }
}
