/** Receives an item. The next one is read when the promise has resolved. */
export type OnItem<Item> = (item: Item) => Promise<void> | undefined;

/**
 * Calls a function for each item without a promise for each: such a promise of a slow stream is in the old generation when its
 * item comes, and keeps the item there.
 */
export interface PushSource<Item> {
  readEach(onItem: OnItem<Item>): Promise<void>;
}

export type ItemSource<Item> = AsyncIterable<Item> | PushSource<Item>;

/**
 * Passes each item to a function, which ends the iteration when it throws. In `for await`, the suspended function holds the last item
 * until the next one arrives. Thousands of slow streams would fill the old generation.
 */
export function readEach<Item>(items: ItemSource<Item>, onItem: OnItem<Item>): Promise<void> {
  if ("readEach" in items) return items.readEach(onItem);
  const iterator = items[Symbol.asyncIterator]();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // As `for await`, waits until the source has cleaned up. Its own error says more than that a reader left.
  const fail = async (error: unknown) => {
    try {
      await iterator.return?.();
      reject(error);
    } catch (cleanupError) {
      reject(cleanupError);
    }
  };
  const read = () => void iterator.next().then(onRead, reject);
  const onRead = ({ done, value }: IteratorResult<Item, unknown>) => {
    if (done) return resolve();
    try {
      const busy = onItem(value);
      if (busy === undefined) read();
      else busy.then(read, fail);
    } catch (error) {
      void fail(error);
    }
  };
  read();
  return promise;
}
