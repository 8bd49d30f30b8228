import type { Notifications } from "../../platform/db/notifications.ts";
import type { KeyRow } from "./queries.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** API keys cached in the memory of this process. */
    keyCache: KeyCache;
  }
}

const MAX_KEYS = 10_000;

/**
 * What this process knows of keys that were used lately. It forgets a key as soon as the database tells of a change, and
 * is not asked while it could have missed one. Only what exists is kept: a stranger's guesses take no place.
 */
export class KeyCache {
  readonly #notifications: Pick<Notifications, "areCurrent">;
  readonly #rows = new Map<string, KeyRow>();
  /** Counts what was forgotten: a row that was asked for before that may be the old one. */
  #evictions = 0;

  constructor(notices: Pick<Notifications, "areCurrent" | "register">) {
    this.#notifications = notices;
    notices.register({
      on: {
        api_key_changed: (lookup) => this.#evict(lookup),
        user_changed: (userId) => this.#evictUser(userId),
      },
      clear: () => this.#clear(),
    });
  }

  /** The key of a lookup: from memory, else by `read`. */
  async find(lookup: string, read: () => Promise<KeyRow | undefined>): Promise<KeyRow | undefined> {
    if (!this.#notifications.areCurrent()) return read();
    const known = this.#rows.get(lookup);
    if (known) return known;
    const forgotten = this.#evictions;
    const row = await read();
    if (row && forgotten === this.#evictions) this.#store(lookup, row);
    return row;
  }

  #store(lookup: string, row: KeyRow): void {
    if (this.#rows.size >= MAX_KEYS) this.#rows.delete(this.#rows.keys().next().value!);
    this.#rows.set(lookup, row);
  }

  #evict(lookup: string): void {
    this.#evictions++;
    this.#rows.delete(lookup);
  }

  #evictUser(userId: string): void {
    this.#evictions++;
    for (const [lookup, row] of this.#rows) if (row.userId === userId) this.#rows.delete(lookup);
  }

  #clear(): void {
    this.#evictions++;
    this.#rows.clear();
  }
}
