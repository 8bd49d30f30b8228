import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { newUuid } from "../../core/ids.ts";
import { AnswerMemory } from "../../integrations/ai-providers/answer-memory.ts";
import type { StreamedEvent } from "../../platform/http/route.ts";
import { LiveEvents } from "./live-events.ts";
import { LiveRun } from "./live-runs.ts";

const completed = { type: "execution.completed", data: {} } as const;

/** A run with one reader; `release` stands for the process that removes it. */
function openRun({ offset = 0 } = {}) {
  const memory = new AnswerMemory();
  const live = new LiveRun(newUuid(new Date()), memory.allocate());
  const client = new AbortController();
  const offsets: number[] = [];
  const onRead = (read: number) => void offsets.push(read);
  const events = new LiveEvents(live, { offset, signal: client.signal, onRead });
  return { memory, live, client, events, offsets };
}

const textOf = ({ type, data }: StreamedEvent) =>
  type === "output.delta" ? (JSON.parse(data!) as { text: string }).text : type!;

test("readEach: passes the start, pieces that arrive together as one, and the end", async () => {
  const { live, events, offsets } = openRun();
  const collected: string[] = [];
  const reading = events.readEach((event) => void collected.push(textOf(event)));
  live.append("One ");
  live.append("two ");
  await nextTurn();
  live.append("three");
  await nextTurn();
  live.end(completed);
  await reading;
  assert.deepEqual(collected, ["execution.started", "One two ", "three", "execution.completed"]);
  assert.deepEqual([offsets[0], offsets.at(-1)], [0, 13]);
});

test("readEach after an offset: passes the rest without the start", async () => {
  const { live, events } = openRun({ offset: 4 });
  live.append("One two");
  live.end(completed);
  const collected: string[] = [];
  await events.readEach((event) => void collected.push(textOf(event)));
  assert.deepEqual(collected, ["two", "execution.completed"]);
});

test("slow reader: gets the next event when it has taken the one before, with all that came meanwhile", async () => {
  const { live, events, offsets } = openRun({ offset: 0 });
  const collected: string[] = [];
  const { promise: drained, resolve: drain } = Promise.withResolvers<void>();
  const reading = events.readEach((event) => {
    collected.push(textOf(event));
    return collected.length === 2 ? drained : undefined;
  });
  live.append("One ");
  await nextTurn();
  live.append("two ");
  live.append("three");
  live.end(completed);
  await nextTurn();
  assert.deepEqual(collected, ["execution.started", "One "]);
  assert.equal(offsets.at(-1), 0, "the run is read no further than the reader has taken");
  drain();
  await reading;
  assert.deepEqual(collected.slice(2), ["two three", "execution.completed"]);
});

for (const how of ["throws", "rejects"] as const)
  test(`reader that ${how}: ends the reading with its error and releases the output`, async () => {
    const { memory, live, events } = openRun();
    const gone = new Error("gone");
    const reading = events.readEach(({ type }) => {
      if (type === "execution.started") return undefined;
      if (how === "rejects") return Promise.reject(gone);
      throw gone;
    });
    live.append("One");
    await assert.rejects(reading, gone);
    assert.equal(memory.used, 3);
    live.release();
    assert.equal(memory.used, 0);
    live.append("two");
    await nextTurn();
  });

test("signal: ends the reading without the end event and releases the output", async () => {
  const { memory, live, client, events } = openRun();
  const collected: string[] = [];
  const reading = events.readEach((event) => void collected.push(textOf(event)));
  live.append("One");
  await nextTurn();
  client.abort();
  await reading;
  assert.deepEqual(collected, ["execution.started", "One"]);
  live.release();
  assert.equal(memory.used, 0);
});

test("reader of an ended run: keeps its output until it has read the end", async () => {
  const { memory, live, events } = openRun();
  live.append("One");
  const { promise: drained, resolve: drain } = Promise.withResolvers<void>();
  const reading = events.readEach(() => drained);
  live.end(completed);
  live.release();
  assert.equal(memory.used, 3);
  drain();
  await reading;
  assert.equal(memory.used, 0);
});
