import assert from "node:assert/strict";
import { test } from "node:test";
import { ResponseBody } from "./response-body.ts";

function openBody() {
  const events = { drained: 0, canceled: 0 };
  const body = new ResponseBody({
    onDrained: () => void events.drained++,
    onCanceled: () => void events.canceled++,
  });
  const read = async () => {
    const { done, value } = await body.next();
    return done ? "end" : String(value);
  };
  return { body, events, read };
}

const broken = new Error("the connection broke");

test("chunks: are read in their order, before and after the reader asks", async () => {
  const { body, read } = openBody();
  body.push(Buffer.from("one"));
  body.push(Buffer.from("two"));
  assert.deepEqual([await read(), await read()], ["one", "two"]);
  const third = read();
  body.push(Buffer.from("three"));
  assert.equal(await third, "three");
  const last = read();
  body.end();
  assert.deepEqual([await last, await read()], ["end", "end"]);
});

test("failure: follows the unread chunks, and each later read fails", async () => {
  const { body, read } = openBody();
  body.push(Buffer.from("one"));
  body.fail(broken, { dropsUnread: false });
  assert.equal(await read(), "one");
  await assert.rejects(read(), broken);
  await assert.rejects(read(), broken);
});

test("failure of a reader that left: drops the unread chunks", async () => {
  const { body, read } = openBody();
  body.push(Buffer.from("one"));
  body.fail(broken, { dropsUnread: true });
  await assert.rejects(read(), broken);
});

test("failure: rejects the read that waits, and an end after it changes nothing", async () => {
  const { body, read } = openBody();
  const waiting = read();
  body.fail(broken, { dropsUnread: false });
  body.end();
  await assert.rejects(waiting, broken);
  await assert.rejects(read(), broken);
});

test("16 KiB unread: the body is full until all is read, and then reports once that it is drained", async () => {
  const { body, events, read } = openBody();
  body.push(Buffer.alloc(16 * 1024 - 1));
  assert.equal(body.isFull, false);
  body.push(Buffer.alloc(1));
  assert.equal(body.isFull, true);
  await read();
  assert.deepEqual([events.drained, body.hasUnread], [0, true]);
  await read();
  assert.deepEqual([events.drained, body.hasUnread, body.isFull], [1, false, false]);
});

test("reader that leaves before the end: cancels, and reads nothing more", async () => {
  const { body, events } = openBody();
  body.push(Buffer.from("one"));
  body.push(Buffer.from("two"));
  for await (const chunk of body) {
    assert.equal(String(chunk), "one");
    break;
  }
  assert.deepEqual([events.canceled, body.hasUnread], [1, false]);
});

test("reader that leaves after the end: cancels nothing", async () => {
  const { body, events } = openBody();
  body.push(Buffer.from("one"));
  body.end();
  for await (const _ of body) break;
  assert.equal(events.canceled, 0);
});

test("readEach: passes on what was received and what follows, in order and at once, then resolves", async () => {
  const { body } = openBody();
  const seen: string[] = [];
  body.push(Buffer.from("one"));
  const end = body.readEach((bytes) => {
    seen.push(String(bytes));
    return undefined;
  });
  body.push(Buffer.from("two"));
  assert.deepEqual(seen, ["one", "two"]);
  body.end();
  await end;
});

test("readEach with a busy function: chunks wait for its promise, and a failure follows them", async () => {
  const { body, events } = openBody();
  const first = Promise.withResolvers<void>();
  const seen: string[] = [];
  body.push(Buffer.from("one"));
  body.push(Buffer.alloc(16 * 1024, "x"));
  const end = body.readEach((bytes) => {
    seen.push(String(bytes));
    return seen.length === 1 ? first.promise : undefined;
  });
  body.push(Buffer.from("three"));
  body.fail(broken, { dropsUnread: false });
  assert.deepEqual([seen, body.isFull, events.drained], [["one"], true, 0]);
  first.resolve();
  await assert.rejects(end, broken);
  assert.deepEqual(seen.slice(2), ["three"]);
});

test("readEach with a function that throws or rejects: cancels, and reads nothing more", async () => {
  for (const refuse of [
    () => {
      throw broken;
    },
    () => Promise.reject(broken),
  ]) {
    const { body, events } = openBody();
    let calls = 0;
    const end = body.readEach(() => {
      calls++;
      return refuse();
    });
    body.push(Buffer.from("one"));
    body.push(Buffer.from("two"));
    await assert.rejects(end, broken);
    assert.deepEqual([events.canceled, calls], [1, 1]);
  }
});
