import { setTimeout as sleep } from "node:timers/promises";
import type { EventType } from "@stoa/contract";
import type pg from "pg";
import type { Logger } from "pino";
import { required } from "../../core/required.ts";
import { type FeedEvent, findLastSequence, listEventsAfter } from "./feed-queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    feed: EventFeed;
  }
}

const POLL_INTERVAL_MS = 200;
const MAX_READERS_PER_POLL = 32;

export interface FeedReader {
  userId: string;
  after: number;
  types: readonly EventType[] | null;
}

/**
 * Delivers events to the open streams of this process. Each poll asks for the last event number once for all readers, and reads
 * rows only when it has moved. A reader with an unread page is not polled; without readers nothing is queried.
 */
export class EventFeed {
  readonly #pool: pg.Pool;
  readonly #log: Logger;
  readonly #closing = new AbortController();
  /** In the order in which the readers began to wait. */
  readonly #waiting = new Map<FeedReader, (events: FeedEvent[]) => void>();
  #isPolling = false;
  #polling: Promise<void> = Promise.resolve();

  constructor(pool: pg.Pool, log: Logger) {
    this.#pool = pool;
    this.#log = log;
  }

  /** Aborts at shutdown. Clients then reconnect to another process. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#polling;
  }

  /** The next events of a reader; none when the signal aborts. */
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
        this.#log.warn({ err: error }, "polling for events failed; the next poll tries again");
        return false;
      });
      if (!isBehind) await sleep(POLL_INTERVAL_MS, null, { signal }).catch(() => {});
    }
    this.#isPolling = false;
  }

  /** Returns whether a reader may have more events waiting. */
  async #pollOnce(): Promise<boolean> {
    const head = await findLastSequence(this.#pool);
    const behind = [...this.#waiting.keys()]
      .filter(({ after }) => after < head)
      .slice(0, MAX_READERS_PER_POLL);
    if (behind.length === 0) return false;
    const pages = await listEventsAfter(this.#pool, behind, head);
    behind.forEach((reader, at) => {
      this.#deliver(reader, required(pages[at], "the page of a reader"), head);
    });
    return true;
  }

  /**
   * Advances the reader past the page, or to the head when the page is empty, and resolves it when it has events of
   * its types.
   */
  #deliver(reader: FeedReader, page: FeedEvent[], head: number): void {
    const resolveReader = this.#waiting.get(reader);
    if (!resolveReader) return;
    reader.after = page.at(-1)?.seq ?? head;
    const matching = page.filter(({ body }) => body !== null);
    this.#waiting.delete(reader);
    if (matching.length > 0) resolveReader(matching);
    // Goes to the end of the map, so that readers take turns.
    else this.#waiting.set(reader, resolveReader);
  }
}
