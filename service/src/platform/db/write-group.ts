export interface GroupedWrite<Item, Result> {
  writeOne(item: Item): Promise<Result>;
  /** Writes all in one statement, if possible without waiting for locks. undefined in place of a result: the item was not written. */
  writeMany(items: readonly Item[]): Promise<(Result | undefined)[]>;
  /** PostgreSQL refused a statement of several items, so each is written alone. */
  onRefused(error: unknown): void;
}

interface WaitingWrite<Item, Result> {
  item: Item;
  resolve: (result: Result | Promise<Result>) => void;
  reject: (error: unknown) => void;
}

/** One statement runs while the next one is prepared. More of them make smaller groups, and more commits. */
const MAX_STATEMENTS = 2;
/** A statement that takes longer may wait for a lock of one item. Other writes do not wait for it. */
const SLOW_MS = 50;
/** A larger group does not save much more, and delays its first write. */
const MAX_ITEMS = 64;
/** Callers write items with longer texts alone: a group is one parameter of one statement. */
export const MAX_GROUPED_CHARACTERS = 32 * 1024;

/**
 * Group commit for one kind of write: those that come while its statements run wait, and share the next one. A write resolves
 * after its commit. Without others, it is sent at once.
 */
export class WriteGroup<Item, Result> {
  readonly #write: GroupedWrite<Item, Result>;
  #waiting: WaitingWrite<Item, Result>[] = [];
  #statements = 0;

  constructor(write: GroupedWrite<Item, Result>) {
    this.#write = write;
  }

  write(item: Item): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    this.#waiting.push({ item, resolve, reject });
    this.#writeNext();
    return promise;
  }

  #writeNext(): void {
    if (this.#statements === MAX_STATEMENTS || this.#waiting.length === 0) return;
    const group = this.#waiting.splice(0, MAX_ITEMS);
    this.#statements++;
    let leave = () => {
      leave = () => {};
      this.#statements--;
      this.#writeNext();
    };
    const timer = setTimeout(() => leave(), SLOW_MS);
    void this.#writeGroup(group).finally(() => {
      clearTimeout(timer);
      leave();
    });
  }

  /** Never rejects. */
  async #writeGroup(group: WaitingWrite<Item, Result>[]): Promise<void> {
    const [first, second] = group;
    if (first && !second) return this.#writeAlone(first);
    try {
      const results = await this.#write.writeMany(group.map(({ item }) => item));
      // Not awaited: an item that waits for a lock must not delay the next group.
      group.forEach((each, at) => {
        const result = results[at];
        if (result === undefined) void this.#writeAlone(each);
        else each.resolve(result);
      });
    } catch (error) {
      if (!isRolledBack(error)) return group.forEach(({ reject }) => void reject(error));
      this.#write.onRefused(error);
      for (const each of group) void this.#writeAlone(each);
    }
  }

  async #writeAlone({ item, resolve, reject }: WaitingWrite<Item, Result>): Promise<void> {
    await this.#write.writeOne(item).then(resolve, reject);
  }
}

/** PostgreSQL refused the statement, perhaps because of one item. After a lost connection the group may be committed. */
const isRolledBack = (error: unknown): boolean => (error as { severity?: string }).severity === "ERROR";
