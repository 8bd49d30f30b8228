import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { mustDrain } from "./event-stream.ts";

const STALL_MS = 20;

/** Blocks the event loop. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("mustDrain, the process pauses for longer than a client may stall: a client that reads is kept", async () => {
  const raw = new EventEmitter();
  const over = new AbortController();
  // After the event loop has looked at the sockets: it runs its timers before it does so again.
  await nextTurn();
  const draining = mustDrain(raw, over, STALL_MS);
  block(3 * STALL_MS);
  setImmediate(() => raw.emit("drain"));
  await draining;
  assert.equal(over.signal.aborted, false);
});

test("mustDrain, a client that reads nothing for as long as it may: leaves it, and its source learns of it", async () => {
  const over = new AbortController();
  await assert.rejects(mustDrain(new EventEmitter(), over, STALL_MS), /reads nothing/);
  assert.equal(over.signal.aborted, true);
});

test("mustDrain, the stream is over: ends at once", async () => {
  const over = new AbortController();
  const draining = mustDrain(new EventEmitter(), over, 60_000);
  over.abort();
  await assert.rejects(draining, /has disconnected/);
});
