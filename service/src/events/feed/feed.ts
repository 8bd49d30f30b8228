import { setTimeout as sleep } from "node:timers/promises";
import type { EventType } from "@stoa/contract";
import type pg from "pg";
import type { Logger } from "pino";
import { findHead, listAhead, type TellableEvent } from "./feed-queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** The open event streams of this process. */
    feed: EventFeed;
  }
}

const LOOK_EVERY_MS = 200;
/** Of one statement. */
const READERS_AT_ONCE = 32;

/** Somebody who follows the events of an account: after which number, and which of them. */
export interface Reader {
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
  readonly #waiting = new Map<Reader, (events: TellableEvent[]) => void>();
  #isLooking = false;
  #looking: Promise<void> = Promise.resolve();

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
    await this.#looking;
  }

  /** What comes next for a reader, as soon as there is something; nothing once the signal aborts. */
  next(reader: Reader, signal: AbortSignal): Promise<TellableEvent[]> {
    if (signal.aborted) return Promise.resolve([]);
    const { promise, resolve } = Promise.withResolvers<TellableEvent[]>();
    const leave = () => resolve([]);
    signal.addEventListener("abort", leave, { once: true });
    this.#waiting.set(reader, resolve);
    if (!this.#isLooking) this.#looking = this.#look();
    return promise.finally(() => {
      this.#waiting.delete(reader);
      signal.removeEventListener("abort", leave);
    });
  }

  async #look(): Promise<void> {
    const { signal } = this.#closing;
    this.#isLooking = true;
    while (this.#waiting.size > 0 && !signal.aborted) {
      const isBehind = await this.#round().catch((error) => {
        this.#log.warn({ err: error }, "nobody heard of events; the next look tries again");
        return false;
      });
      if (!isBehind) await sleep(LOOK_EVERY_MS, null, { signal }).catch(() => {});
    }
    this.#isLooking = false;
  }

  /** Answers whether there may be more at once. */
  async #round(): Promise<boolean> {
    const head = await findHead(this.#pool);
    const behind = [...this.#waiting.keys()].filter(({ after }) => after < head).slice(0, READERS_AT_ONCE);
    if (behind.length === 0) return false;
    const pages = await listAhead(this.#pool, behind, head);
    behind.forEach((reader, at) => {
      this.#tell(reader, pages[at]!, head);
    });
    return true;
  }

  /** Passes on what the reader wants; it has then seen all up to the last, and without any all up to the head. */
  #tell(reader: Reader, page: TellableEvent[], head: number): void {
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
