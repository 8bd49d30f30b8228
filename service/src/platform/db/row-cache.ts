import type { Notifications } from "./notifications.ts";

const MAX_ROWS = 10_000;

/** The channels whose notifications evict rows. */
interface Eviction<Row> {
  /** Its payload is the key of one row. */
  key: string;
  /** Channels about something that many rows depend on; each says whether a row depends on the payload. */
  dependencies: Record<string, (row: Row, payload: string) => boolean>;
}

/**
 * Caches rows that were read lately. A PostgreSQL notification evicts a changed row, and the cache is not used while
 * it could have missed one. Missing rows are not cached, so guesses take no memory.
 */
export class RowCache<Row> {
  readonly #notifications: Pick<Notifications, "areCurrent">;
  readonly #rows = new Map<string, Row>();
  /** A row that was read before an eviction may be stale. */
  #evictions = 0;

  constructor(
    notifications: Pick<Notifications, "areCurrent" | "register">,
    { key, dependencies }: Eviction<Row>,
  ) {
    this.#notifications = notifications;
    const evictDependents = Object.entries(dependencies).map(([channel, dependsOn]) => [
      channel,
      (payload: string) => this.#evictWhere((row) => dependsOn(row, payload)),
    ]);
    notifications.register({
      on: { [key]: (changed) => this.#evict(changed), ...Object.fromEntries(evictDependents) },
      clear: () => this.#clear(),
    });
  }

  async find(key: string, read: () => Promise<Row | undefined>): Promise<Row | undefined> {
    if (!this.#notifications.areCurrent()) return read();
    const known = this.#rows.get(key);
    if (known) return known;
    const evictions = this.#evictions;
    const row = await read();
    if (row && evictions === this.#evictions) this.#store(key, row);
    return row;
  }

  #store(key: string, row: Row): void {
    if (this.#rows.size >= MAX_ROWS) this.#rows.delete(this.#rows.keys().next().value!);
    this.#rows.set(key, row);
  }

  #evict(key: string): void {
    this.#evictions++;
    this.#rows.delete(key);
  }

  #evictWhere(matches: (row: Row) => boolean): void {
    this.#evictions++;
    for (const [key, row] of this.#rows) if (matches(row)) this.#rows.delete(key);
  }

  #clear(): void {
    this.#evictions++;
    this.#rows.clear();
  }
}
