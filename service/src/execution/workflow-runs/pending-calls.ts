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
 * What the calls of a run that is driven here take of their keys' limits, and give back. Mostly both are written with the steps that
 * they are of: how a call ended waits for that no longer than the step does, and is written by itself where nobody drives the run.
 */
export class PendingCalls {
  readonly #ctx: Context;
  readonly #reserved = new Map<string, Reserved<LateRefusal>>();
  #ended: CallEnd[] = [];
  #isOver = false;

  constructor(ctx: Context) {
    this.#ctx = ctx;
  }

  /** Something is still to be written. */
  get hasEnded(): boolean {
    return this.#ended.length > 0;
  }

  /** A call has ended: what came of it follows, and wakes the driver. What it says of its key concerns all runs, and is written at once. */
  async end(end: CallEnd | null): Promise<void> {
    if (end === null) return;
    if (end.keyStatus !== null || this.#isOver) return endCall(this.#ctx, end);
    this.#ended.push(end);
  }

  /** For a statement that ends what has ended, and opens these. */
  drain(opened: readonly OpenCall[]): CallChanges {
    const ended = this.#ended;
    this.#ended = [];
    return { ended, opened };
  }

  /** They could not be written. */
  restore({ ended }: CallChanges): void {
    this.#ended.unshift(...ended);
  }

  /** They are written: what became of those that were to be opened, by their ids. */
  onWritten(moved: CallChanges, reserved: Record<string, Reserved<LateRefusal>>): void {
    for (const end of moved.ended) releaseCall(this.#ctx, end);
    for (const [callId, became] of Object.entries(reserved)) this.#reserved.set(callId, became);
  }

  /** What became of one. */
  takeReservation({ reservation: { callId } }: OpenCall): Reserved<LateRefusal> {
    const became = this.#reserved.get(callId) ?? {};
    this.#reserved.delete(callId);
    return became;
  }

  /** Writes by itself what waits to be written. */
  async flush(): Promise<void> {
    await Promise.all(this.drain([]).ended.map((end) => endCall(this.#ctx, end)));
  }

  /** The run is driven here no more: whatever ends from now on is written by itself. */
  async close(): Promise<void> {
    this.#isOver = true;
    await this.flush();
  }
}
