import type { Context } from "../../core/context.ts";
import {
  type CallEnd,
  endCall,
  type LateRefusal,
  type OpenCall,
  type Reserved,
  releaseCall,
} from "../provider-keys/provider-calls.ts";

export interface CallChanges {
  ended: CallEnd[];
  opened: readonly OpenCall[];
}

/**
 * The provider calls of a driven run whose reservations and ends the next checkpoint writes with their steps. A call whose run has
 * no driver any more is ended on its own.
 */
export class PendingCalls {
  readonly #ctx: Context;
  readonly #reserved = new Map<string, Reserved<LateRefusal>>();
  #ended: CallEnd[] = [];
  #isClosed = false;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Some ends of calls are not written yet. */
  get hasEnded(): boolean {
    return this.#ended.length > 0;
  }

  /** Queues the end of a call for the next checkpoint. A new status of the key concerns all runs and is written at once. */
  async end(end: CallEnd | null): Promise<void> {
    if (end === null) return;
    if (end.keyStatus !== null || this.#isClosed) return endCall(this.#ctx, end);
    this.#ended.push(end);
  }

  /** Moves the queued ends to one checkpoint, which also opens these calls. */
  drain(opened: readonly OpenCall[]): CallChanges {
    const ended = this.#ended;
    this.#ended = [];
    return { ended, opened };
  }

  /** Queues the ends of a checkpoint again that was not written. */
  restore({ ended }: CallChanges): void {
    this.#ended.unshift(...ended);
  }

  /** Stores the reservations of opened calls, by their ids. */
  onWritten(written: CallChanges, reserved: Record<string, Reserved<LateRefusal>>): void {
    for (const end of written.ended) releaseCall(this.#ctx, end);
    for (const [callId, result] of Object.entries(reserved)) this.#reserved.set(callId, result);
  }

  /** Returns the reservation of an opened call once. */
  takeReservation({ reservation: { callId } }: OpenCall): Reserved<LateRefusal> {
    const reserved = this.#reserved.get(callId) ?? {};
    this.#reserved.delete(callId);
    return reserved;
  }

  /** Writes the queued ends without a checkpoint. */
  async flush(): Promise<void> {
    await Promise.all(this.drain([]).ended.map((end) => endCall(this.#ctx, end)));
  }

  /** The driver has left the run: each later end is written on its own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }
}
