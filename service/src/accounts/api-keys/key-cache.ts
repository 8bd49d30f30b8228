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
 * Caches keys that were used lately. A PostgreSQL notification evicts a changed key, and the cache is not used while
 * it could have missed one. Unknown keys are not cached, so guesses take no memory.
 */
export class KeyCache {
  readonly #notifications: Pick<Notifications, "areCurrent">;
  readonly #rows = new Map<string, KeyRow>();
  /** A row that was read before an eviction may be stale. */
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

  async find(lookup: string, read: () => Promise<KeyRow | undefined>): Promise<KeyRow | undefined> {
    if (!this.#notifications.areCurrent()) return read();
    const known = this.#rows.get(lookup);
    if (known) return known;
    const evictions = this.#evictions;
    const row = await read();
    if (row && evictions === this.#evictions) this.#store(lookup, row);
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
