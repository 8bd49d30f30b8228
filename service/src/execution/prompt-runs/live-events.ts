import type { OnItem, PushSource } from "../../core/read-each.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import { toDeltaEvent, toStartedEvent, toStreamedEnd } from "./event-format.ts";
import type { LiveRun } from "./live-runs.ts";

interface LiveEventsOptions {
  /** In UTF-16 units of the output. */
  offset: number;
  signal: AbortSignal;
  /** Called before each event with what was read so far. */
  onRead?: (offset: number) => void;
}

/** Passes the events of a run of this process, after an offset and up to the end, to one reader. */
export class LiveEvents implements PushSource<StreamedEvent> {
  readonly #live: LiveRun;
  readonly #signal: AbortSignal;
  readonly #onRead: (offset: number) => void;
  #offset: number;
  #needsStart: boolean;
  #isOver = false;

  constructor(live: LiveRun, { offset, signal, onRead = () => {} }: LiveEventsOptions) {
    this.#live = live;
    this.#signal = signal;
    this.#onRead = onRead;
    this.#offset = offset;
    this.#needsStart = offset === 0;
  }

  readEach(onEvent: OnItem<StreamedEvent>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let isWaiting = false;
    const read = () => {
      try {
        for (let event = this.#next(); event; event = this.#next()) {
          const busy = onEvent(event);
          if (busy !== undefined) return void busy.then(read, fail);
        }
      } catch (error) {
        return fail(error);
      }
      if (!this.#isOver) isWaiting = true;
      else finish(resolve);
    };
    this.#live.retain();
    // One listener for the whole stream: adding one for each event creates garbage.
    const stop = this.#live.addListener(this.#signal, () => {
      if (!isWaiting) return;
      isWaiting = false;
      // Pieces that arrive together become one event.
      queueMicrotask(read);
    });
    const finish = (end: () => void) => {
      stop();
      this.#live.release();
      end();
    };
    const fail = (error: unknown) => finish(() => reject(error));
    read();
    return promise;
  }

  /** null: there is none yet, or the stream is over. */
  #next(): StreamedEvent | null {
    if (this.#needsStart) {
      this.#needsStart = false;
      return toStartedEvent(this.#live.id);
    }
    this.#isOver ||= this.#signal.aborted;
    if (this.#isOver) return null;
    this.#onRead(this.#offset);
    const { text, endEvent } = this.#live;
    const piece = text.after(this.#offset, endEvent !== null);
    this.#offset += piece.length;
    if (piece !== "") return toDeltaEvent(piece, this.#offset);
    this.#isOver = endEvent !== null;
    return endEvent && toStreamedEnd(endEvent);
  }
}
