import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { NotifiedCache } from "../../platform/db/notifications.ts";
import { ListCache } from "./list-cache.ts";
import { CATALOG_CHANNEL } from "./queries.ts";

const MIB = 1024 * 1024;

/** A connection for notifications that the test controls. */
function openCache() {
  const clock = { now: new Date("2026-06-15T12:00:00.000Z") };
  const line = { current: true, proofs: 0, reconnects: false };
  const memories: NotifiedCache[] = [];
  const cache = new ListCache(
    {
      areCurrent: () => line.current,
      catchUp: async () => {
        line.proofs++;
        line.current ||= line.reconnects;
      },
      register: (memory) => void memories.push(memory),
    },
    () => clock.now,
  );
  return {
    cache,
    line,
    forward: (ms: number) => {
      clock.now = new Date(clock.now.getTime() + ms);
    },
    /** Sends a notification that lists have changed. */
    notify: () => memories[0]!.on[CATALOG_CHANNEL]!(""),
    lose: () => memories[0]!.clear(),
  };
}

/** Queries that the test answers one by one. */
function deferredQueries() {
  const waiting: ((answer: string) => void)[] = [];
  return {
    asked: () => waiting.length,
    compute: () => new Promise<string>((resolve) => void waiting.push(resolve)),
    answer: (at: number, text: string) => waiting[at]!(text),
  };
}

/** Returns another number at each call. */
const counter = () => {
  let count = 0;
  return async () => ++count;
};

suite("ListCache", () => {
  test("parallel reads of one key: one query", async () => {
    const { cache } = openCache();
    const database = deferredQueries();
    const answers = Array.from({ length: 1_000 }, () => cache.get("a", database.compute));
    await nextTurn();
    assert.equal(database.asked(), 1);
    database.answer(0, "first");
    assert.deepEqual(new Set(await Promise.all(answers)), new Set(["first"]));
    assert.equal(await cache.get("a", database.compute), "first");
    assert.equal(database.asked(), 1);
  });

  test("entries: separated by key", async () => {
    const { cache } = openCache();
    const compute = counter();
    assert.deepEqual(
      [await cache.get("a", compute), await cache.get("b", compute), await cache.get("a", compute)],
      [1, 2, 1],
    );
  });

  test("an entry: lives four seconds from the start of its query", async () => {
    const { cache, forward } = openCache();
    const database = deferredQueries();
    const slow = cache.get("a", database.compute);
    await nextTurn();
    forward(3_000);
    database.answer(0, "first");
    await slow;
    forward(999);
    assert.equal(await cache.get("a", database.compute), "first");
    forward(1);
    const again = cache.get("a", database.compute);
    await nextTurn();
    database.answer(1, "second");
    assert.equal(await again, "second");
  });

  test("the clock is set back: the entry is not used", async () => {
    const { cache, forward } = openCache();
    const compute = counter();
    await cache.get("a", compute);
    forward(-1);
    assert.equal(await cache.get("a", compute), 2);
  });

  test("a notification about lists: clears it", async () => {
    const { cache, notify } = openCache();
    const compute = counter();
    await cache.get("a", compute);
    notify();
    assert.equal(await cache.get("a", compute), 2);
    assert.equal(cache.bytes > 0, true);
    notify();
    assert.equal(cache.bytes, 0);
  });

  test("a failed query: rejects all waiting callers, not cached", async () => {
    const { cache } = openCache();
    const fail = () => Promise.reject(new Error("away"));
    const answers = await Promise.allSettled([cache.get("a", fail), cache.get("a", fail)]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      ["rejected", "rejected"],
    );
    assert.equal(await cache.get("a", counter()), 1);
  });

  test("a query that throws at once: the next call works", async () => {
    const { cache } = openCache();
    await assert.rejects(
      cache.get("a", () => {
        throw new Error("at once");
      }),
    );
    assert.equal(await cache.get("a", counter()), 1);
  });
});

suite("a query that starts before a change and ends after it", () => {
  test("returned to its caller, not cached", async () => {
    const { cache, notify } = openCache();
    const database = deferredQueries();
    const early = cache.get("a", database.compute);
    await nextTurn();
    notify();
    database.answer(0, "of before");
    assert.equal(await early, "of before");
    assert.equal(cache.bytes, 0);
    const late = cache.get("a", database.compute);
    await nextTurn();
    database.answer(1, "of after");
    assert.equal(await late, "of after");
  });

  test("not shared with later callers, and replaces no newer entry", async () => {
    const { cache, notify } = openCache();
    const database = deferredQueries();
    const early = cache.get("a", database.compute);
    await nextTurn();
    notify();
    const late = cache.get("a", database.compute);
    await nextTurn();
    assert.equal(database.asked(), 2);
    database.answer(0, "of before");
    await early;
    const third = cache.get("a", database.compute);
    await nextTurn();
    assert.equal(database.asked(), 2, "the later question is shared");
    database.answer(1, "of after");
    assert.deepEqual(await Promise.all([late, third]), ["of after", "of after"]);
  });
});

suite("changes could be missed", () => {
  test("each call queries, nothing is cached", async () => {
    const { cache, line, lose } = openCache();
    const compute = counter();
    await cache.get("a", compute);
    lose();
    line.current = false;
    assert.equal(cache.bytes, 0);
    assert.deepEqual(await Promise.all([cache.get("a", compute), cache.get("a", compute)]), [2, 3]);
    assert.equal(cache.bytes, 0);
    line.current = true;
    assert.equal(await cache.get("a", compute), 4);
    assert.equal(await cache.get("a", compute), 4);
  });

  test("an idle connection is probed once, then the cache works again", async () => {
    const { cache, line } = openCache();
    const compute = counter();
    await cache.get("a", compute);
    Object.assign(line, { current: false, reconnects: true });
    assert.equal(await cache.get("a", compute), 1);
    assert.equal(line.proofs, 1);
  });

  test("a query in flight when the connection was lost: not cached", async () => {
    const { cache, lose } = openCache();
    const database = deferredQueries();
    const early = cache.get("a", database.compute);
    await nextTurn();
    lose();
    database.answer(0, "of before");
    await early;
    assert.equal(cache.bytes, 0);
  });
});

suite("the memory of the cache", () => {
  const large = async () => Buffer.alloc(MIB);

  test("bounded: the oldest entry is evicted first", async () => {
    const { cache } = openCache();
    for (let at = 0; at < 80; at++) await cache.get(`${at}`, large);
    assert.ok(cache.bytes <= 64 * MIB && cache.bytes > 60 * MIB, `${cache.bytes}`);
    const compute = async () => "asked again";
    assert.notEqual(await cache.get("79", compute), "asked again");
    assert.notEqual(await cache.get("20", compute), "asked again");
    assert.equal(await cache.get("0", compute), "asked again");
  });

  test("keys count, so many empty answers do not fill it", async () => {
    const { cache } = openCache();
    for (let at = 0; at < 80; at++) await cache.get(`${at}${"x".repeat(MIB)}`, async () => 0);
    assert.ok(cache.bytes <= 64 * MIB, `${cache.bytes}`);
  });

  test("an entry replaced under one key: counts once", async () => {
    const { cache, forward } = openCache();
    await cache.get("a", large);
    const once = cache.bytes;
    forward(4_000);
    await cache.get("a", large);
    assert.equal(cache.bytes, once);
  });

  test("an entry larger than the whole cache: not cached", async () => {
    const { cache } = openCache();
    await cache.get("huge", async () => Buffer.alloc(65 * MIB));
    assert.equal(cache.bytes, 0);
  });

  test("expired entries: release their memory", async () => {
    const { cache, forward } = openCache();
    await cache.get("old", large);
    forward(3_999);
    await cache.get("new", large);
    forward(1);
    const before = cache.bytes;
    cache.evictExpired();
    assert.equal(cache.bytes, before / 2);
    assert.equal(await cache.get("new", async () => "asked again").then(Buffer.isBuffer), true);
  });
});
