import { serialize } from "node:v8";
import type { Notifications } from "../../platform/db/notifications.ts";
import { CATALOG_CHANNEL } from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Answers that are the same for every caller, cached in this process. */
    listCache: ListCache;
  }
}

/** Counters in lists are at most five seconds old: a view may wait a second before it is written. */
const MAX_AGE_MS = 4_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** The overhead of an entry beside its key and value. */
const ENTRY_BYTES = 512;

interface Entry {
  value: unknown;
  bytes: number;
  /** The start of its query. */
  startedAt: number;
}

/**
 * Caches answers that are the same for every caller: a thousand requests a second cost one query in four seconds. Each
 * change of a list sends a notification (`listing.ts`), which clears the cache. The cache is not used while
 * notifications could be missed.
 */
export class ListCache {
  readonly #notifications: Pick<Notifications, "areCurrent" | "catchUp">;
  readonly #now: () => Date;
  /** In insertion order: the oldest entry is evicted first. */
  readonly #entries = new Map<string, Entry>();
  /** Running queries, shared by callers of the same key. */
  readonly #running = new Map<string, Promise<unknown>>();
  #bytes = 0;
  /** A query that started before the last clear may be stale. */
  #clears = 0;

  constructor(notifications: Pick<Notifications, "areCurrent" | "catchUp" | "register">, now: () => Date) {
    this.#notifications = notifications;
    this.#now = now;
    notifications.register({
      on: { [CATALOG_CHANNEL]: () => this.#clear() },
      clear: () => this.#clear(),
    });
  }

  /** An estimate. */
  get bytes(): number {
    return this.#bytes;
  }

  /** `compute` must not depend on the caller. */
  async get<Value>(key: string, compute: () => Promise<Value>): Promise<Value> {
    // After an idle second, this costs one query. Without a connection it does not wait.
    if (!this.#notifications.areCurrent()) await this.#notifications.catchUp();
    if (!this.#notifications.areCurrent()) return compute();
    const entry = this.#entries.get(key);
    if (entry && this.#isFresh(entry)) return entry.value as Value;
    return (this.#running.get(key) ?? this.#start(key, compute)) as Promise<Value>;
  }

  evictExpired(): void {
    for (const [key, entry] of this.#entries) if (!this.#isFresh(entry)) this.#drop(key, entry);
  }

  #start<Value>(key: string, compute: () => Promise<Value>): Promise<Value> {
    const clears = this.#clears;
    const startedAt = this.#now().getTime();
    const answer = Promise.resolve()
      .then(compute)
      .then((value) => {
        if (clears === this.#clears) this.#store(key, value, startedAt);
        return value;
      })
      .finally(() => {
        if (clears === this.#clears) this.#running.delete(key);
      });
    this.#running.set(key, answer);
    return answer;
  }

  /** A clock that was set back makes entries of the future, which count as expired. */
  #isFresh({ startedAt }: Entry): boolean {
    const age = this.#now().getTime() - startedAt;
    return age >= 0 && age < MAX_AGE_MS;
  }

  #store(key: string, value: unknown, startedAt: number): void {
    const before = this.#entries.get(key);
    if (before) this.#drop(key, before);
    const entry = { value, bytes: sizeOf(key, value), startedAt };
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes;
    for (const [oldKey, old] of this.#entries) {
      if (this.#bytes <= MAX_BYTES) break;
      this.#drop(oldKey, old);
    }
  }

  #drop(key: string, { bytes }: Entry): void {
    this.#entries.delete(key);
    this.#bytes -= bytes;
  }

  #clear(): void {
    this.#clears++;
    this.#entries.clear();
    this.#running.clear();
    this.#bytes = 0;
  }
}

const sizeOf = (key: string, value: unknown) => 2 * key.length + serialize(value).byteLength + ENTRY_BYTES;
