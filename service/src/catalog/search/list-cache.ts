import { serialize } from "node:v8";
import type { Notifications } from "../../platform/db/notifications.ts";
import { CATALOG_CHANNEL } from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Lists that look the same to everybody, cached in the memory of this process. */
    listCache: ListCache;
  }
}

/** Lists show numbers that are at most five seconds old; a view may have waited for the first of them to be written. */
const MAX_AGE_MS = 4_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** What an entry takes beside its key and value. */
const ENTRY_BYTES = 512;

interface Entry {
  value: unknown;
  bytes: number;
  /** From when its numbers are. */
  askedAt: number;
}

/**
 * Answers that are the same for everybody, kept in this process: a list that is asked for a thousand times a second
 * costs the database one question in four seconds. Whatever changes a list tells of it (`listing.ts`), and everything
 * is forgotten then; while that could have been missed, nothing is used and nothing is kept.
 */
export class ListCache {
  readonly #notices: Pick<Notifications, "areCurrent" | "catchUp">;
  readonly #now: () => Date;
  /** In the order in which they were put in: the oldest goes first. */
  readonly #entries = new Map<string, Entry>();
  /** Questions that run: who asks the same meanwhile shares the answer. */
  readonly #asked = new Map<string, Promise<unknown>>();
  #bytes = 0;
  /** Counts how often all was forgotten: what was asked for before that may be of before. */
  #forgotten = 0;

  constructor(notices: Pick<Notifications, "areCurrent" | "catchUp" | "register">, now: () => Date) {
    this.#notices = notices;
    this.#now = now;
    notices.register({
      on: { [CATALOG_CHANNEL]: () => this.#forgetAll() },
      clear: () => this.#forgetAll(),
    });
  }

  /** About how much memory it takes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The answer under this key: from memory, else by `compute`, which must know nothing of who asks. */
  async get<Value>(key: string, compute: () => Promise<Value>): Promise<Value> {
    // After an idle second it takes one question to know; where no line is open, this does not wait.
    if (!this.#notices.areCurrent()) await this.#notices.catchUp();
    if (!this.#notices.areCurrent()) return compute();
    const entry = this.#entries.get(key);
    if (entry && this.#isFresh(entry)) return entry.value as Value;
    return (this.#asked.get(key) ?? this.#ask(key, compute)) as Promise<Value>;
  }

  /** Gives back the memory of what is too old to be used. */
  evictExpired(): void {
    for (const [key, entry] of this.#entries) if (!this.#isFresh(entry)) this.#drop(key, entry);
  }

  #ask<Value>(key: string, compute: () => Promise<Value>): Promise<Value> {
    const forgotten = this.#forgotten;
    const askedAt = this.#now().getTime();
    const answer = Promise.resolve()
      .then(compute)
      .then((value) => {
        if (forgotten === this.#forgotten) this.#keep(key, value, askedAt);
        return value;
      })
      .finally(() => {
        if (forgotten === this.#forgotten) this.#asked.delete(key);
      });
    this.#asked.set(key, answer);
    return answer;
  }

  /** A clock that was set back makes an entry of the future, which is as good as an old one. */
  #isFresh({ askedAt }: Entry): boolean {
    const age = this.#now().getTime() - askedAt;
    return age >= 0 && age < MAX_AGE_MS;
  }

  #keep(key: string, value: unknown, askedAt: number): void {
    const before = this.#entries.get(key);
    if (before) this.#drop(key, before);
    const entry = { value, bytes: sizeOf(key, value), askedAt };
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

  #forgetAll(): void {
    this.#forgotten++;
    this.#entries.clear();
    this.#asked.clear();
    this.#bytes = 0;
  }
}

const sizeOf = (key: string, value: unknown) => 2 * key.length + serialize(value).byteLength + ENTRY_BYTES;
