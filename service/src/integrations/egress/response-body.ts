import type { OnItem, PushSource } from "../../core/read-each.ts";

/** Unread bytes at which the connection pauses. Most answers of providers come in smaller pieces, and a pause costs more than to read one. */
const MAX_UNREAD_BYTES = 16 * 1024;

interface BodyEvents {
  /** The reader has read all that was received. */
  onDrained(): void;
  /** The reader left before the end. */
  onCanceled(): void;
}

interface Reader {
  resolve(result: IteratorResult<Uint8Array, undefined>): void;
  reject(error: unknown): void;
}

const DONE = { done: true, value: undefined } as const;

/** The received chunks of one response, for one reader: as an async iterator or by `readEach`. */
export class ResponseBody implements AsyncIterableIterator<Uint8Array, undefined>, PushSource<Uint8Array> {
  readonly #events: BodyEvents;
  readonly #unread: Uint8Array[] = [];
  #unreadBytes = 0;
  #reader: Reader | null = null;
  /** null: more may come. */
  #end: { failure: Error | null } | null = null;

  constructor(events: BodyEvents) {
    this.#events = events;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  get hasUnread(): boolean {
    return this.#unread.length > 0;
  }

  get isFull(): boolean {
    return this.#unreadBytes >= MAX_UNREAD_BYTES;
  }

  push(chunk: Uint8Array): void {
    const reader = this.#takeReader();
    if (reader) {
      reader.resolve({ done: false, value: chunk });
      return;
    }
    this.#unread.push(chunk);
    this.#unreadBytes += chunk.length;
  }

  end(): void {
    this.#end ??= { failure: null };
    this.#takeReader()?.resolve(DONE);
  }

  /** The reader gets the error after what it has not read yet, or at once. */
  fail(failure: Error, { dropsUnread }: { dropsUnread: boolean }): void {
    this.#end ??= { failure };
    if (dropsUnread) this.#dropUnread();
    this.#takeReader()?.reject(failure);
  }

  readEach(onBytes: OnItem<Uint8Array>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const fail = (error: unknown) => {
      reject(error);
      void this.return();
    };
    /** Returns whether to read on at once. */
    const passOn = (bytes: Uint8Array): boolean => {
      try {
        const busy = onBytes(bytes);
        busy?.then(read, fail);
        return busy === undefined;
      } catch (error) {
        fail(error);
        return false;
      }
    };
    const reader: Reader = {
      resolve: ({ done, value }) => {
        if (done) resolve();
        else if (passOn(value)) read();
      },
      reject,
    };
    const read = () => {
      for (let bytes = this.#takeUnread(); bytes; bytes = this.#takeUnread()) if (!passOn(bytes)) return;
      if (!this.#end) this.#reader = reader;
      else if (this.#end.failure) reject(this.#end.failure);
      else resolve();
    };
    read();
    return promise;
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const value = this.#takeUnread();
    if (value) return { done: false, value };
    if (!this.#end) return new Promise((resolve, reject) => (this.#reader = { resolve, reject }));
    if (this.#end.failure) throw this.#end.failure;
    return DONE;
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#dropUnread();
    if (!this.#end) this.#events.onCanceled();
    return DONE;
  }

  #takeUnread(): Uint8Array | undefined {
    const bytes = this.#unread.shift();
    if (!bytes) return undefined;
    this.#unreadBytes -= bytes.length;
    if (!this.hasUnread && !this.#end) this.#events.onDrained();
    return bytes;
  }

  #dropUnread(): void {
    this.#unread.length = 0;
    this.#unreadBytes = 0;
  }

  #takeReader(): Reader | null {
    const reader = this.#reader;
    this.#reader = null;
    return reader;
  }
}
