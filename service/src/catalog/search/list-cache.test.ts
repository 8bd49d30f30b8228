import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { NotifiedCache } from "../../platform/db/notifications.ts";
import { ListCache } from "./list-cache.ts";
import { CATALOG_CHANNEL } from "./queries.ts";

const MIB = 1024 * 1024;

/** A line to PostgreSQL that does as it is told. */
function open() {
  const clock = { now: new Date("2026-06-15T12:00:00.000Z") };
  const line = { current: true, proofs: 0, comesBack: false };
  const memories: NotifiedCache[] = [];
  const kept = new ListCache(
    {
      areCurrent: () => line.current,
      catchUp: async () => {
        line.proofs++;
        line.current ||= line.comesBack;
      },
      register: (memory) => void memories.push(memory),
    },
    () => clock.now,
  );
  return {
    kept,
    line,
    forward: (ms: number) => {
      clock.now = new Date(clock.now.getTime() + ms);
    },
    /** Something that lists show has changed. */
    tell: () => memories[0]!.on[CATALOG_CHANNEL]!(""),
    lose: () => memories[0]!.clear(),
  };
}

/** Answers its questions one by one, when it is told to. */
function questions() {
  const waiting: ((answer: string) => void)[] = [];
  return {
    asked: () => waiting.length,
    ask: () => new Promise<string>((resolve) => void waiting.push(resolve)),
    answer: (at: number, text: string) => waiting[at]!(text),
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Answers another number each time that it is asked. */
const counter = () => {
  let count = 0;
  return async () => ++count;
};

suite("what is kept", () => {
  test("is asked for once, however many ask at once", async () => {
    const { kept } = open();
    const database = questions();
    const answers = Array.from({ length: 1_000 }, () => kept.get("a", database.ask));
    await turn();
    assert.equal(database.asked(), 1);
    database.answer(0, "first");
    assert.deepEqual(new Set(await Promise.all(answers)), new Set(["first"]));
    assert.equal(await kept.get("a", database.ask), "first");
    assert.equal(database.asked(), 1);
  });

  test("is kept apart by its key", async () => {
    const { kept } = open();
    const ask = counter();
    assert.deepEqual(
      [await kept.get("a", ask), await kept.get("b", ask), await kept.get("a", ask)],
      [1, 2, 1],
    );
  });

  test("lives for four seconds from when it was asked for", async () => {
    const { kept, forward } = open();
    const database = questions();
    const slow = kept.get("a", database.ask);
    await turn();
    forward(3_000);
    database.answer(0, "first");
    await slow;
    forward(999);
    assert.equal(await kept.get("a", database.ask), "first");
    forward(1);
    const again = kept.get("a", database.ask);
    await turn();
    database.answer(1, "second");
    assert.equal(await again, "second");
  });

  test("is not used when the clock was set back", async () => {
    const { kept, forward } = open();
    const ask = counter();
    await kept.get("a", ask);
    forward(-1);
    assert.equal(await kept.get("a", ask), 2);
  });

  test("is forgotten when lists have changed", async () => {
    const { kept, tell } = open();
    const ask = counter();
    await kept.get("a", ask);
    tell();
    assert.equal(await kept.get("a", ask), 2);
    assert.equal(kept.bytes > 0, true);
    tell();
    assert.equal(kept.bytes, 0);
  });

  test("a failure is told to all who wait for it, and not kept", async () => {
    const { kept } = open();
    const fail = () => Promise.reject(new Error("away"));
    const answers = await Promise.allSettled([kept.get("a", fail), kept.get("a", fail)]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      ["rejected", "rejected"],
    );
    assert.equal(await kept.get("a", counter()), 1);
  });

  test("a question that fails before it is asked stands in nobody's way", async () => {
    const { kept } = open();
    await assert.rejects(
      kept.get("a", () => {
        throw new Error("at once");
      }),
    );
    assert.equal(await kept.get("a", counter()), 1);
  });
});

suite("a question that was asked before a change and is answered after it", () => {
  test("is answered, and not kept", async () => {
    const { kept, tell } = open();
    const database = questions();
    const early = kept.get("a", database.ask);
    await turn();
    tell();
    database.answer(0, "of before");
    assert.equal(await early, "of before");
    assert.equal(kept.bytes, 0);
    const late = kept.get("a", database.ask);
    await turn();
    database.answer(1, "of after");
    assert.equal(await late, "of after");
  });

  test("is shared by nobody who asks after the change, and takes nobody's place", async () => {
    const { kept, tell } = open();
    const database = questions();
    const early = kept.get("a", database.ask);
    await turn();
    tell();
    const late = kept.get("a", database.ask);
    await turn();
    assert.equal(database.asked(), 2);
    database.answer(0, "of before");
    await early;
    const third = kept.get("a", database.ask);
    await turn();
    assert.equal(database.asked(), 2, "the later question is shared");
    database.answer(1, "of after");
    assert.deepEqual(await Promise.all([late, third]), ["of after", "of after"]);
  });
});

suite("while changes could be missed", () => {
  test("everybody asks, and nothing is kept", async () => {
    const { kept, line, lose } = open();
    const ask = counter();
    await kept.get("a", ask);
    lose();
    line.current = false;
    assert.equal(kept.bytes, 0);
    assert.deepEqual(await Promise.all([kept.get("a", ask), kept.get("a", ask)]), [2, 3]);
    assert.equal(kept.bytes, 0);
    line.current = true;
    assert.equal(await kept.get("a", ask), 4);
    assert.equal(await kept.get("a", ask), 4);
  });

  test("a line that was only idle is asked once, and then it is kept again", async () => {
    const { kept, line } = open();
    const ask = counter();
    await kept.get("a", ask);
    Object.assign(line, { current: false, comesBack: true });
    assert.equal(await kept.get("a", ask), 1);
    assert.equal(line.proofs, 1);
  });

  test("an answer that was on its way when the line was lost is not kept", async () => {
    const { kept, lose } = open();
    const database = questions();
    const early = kept.get("a", database.ask);
    await turn();
    lose();
    database.answer(0, "of before");
    await early;
    assert.equal(kept.bytes, 0);
  });
});

suite("the memory that it takes", () => {
  const large = async () => Buffer.alloc(MIB);

  test("has a bound: the oldest goes first", async () => {
    const { kept } = open();
    for (let at = 0; at < 200; at++) await kept.get(`${at}`, large);
    assert.ok(kept.bytes <= 64 * MIB && kept.bytes > 60 * MIB, `${kept.bytes}`);
    const ask = async () => "asked again";
    assert.notEqual(await kept.get("199", ask), "asked again");
    assert.notEqual(await kept.get("140", ask), "asked again");
    assert.equal(await kept.get("0", ask), "asked again");
  });

  test("counts keys too, so that many questions without an answer do not fill it", async () => {
    const { kept } = open();
    for (let at = 0; at < 2_000; at++) await kept.get(`${at}${"x".repeat(MIB / 16)}`, async () => 0);
    assert.ok(kept.bytes <= 64 * MIB, `${kept.bytes}`);
  });

  test("counts what is kept anew under one key once", async () => {
    const { kept, forward } = open();
    await kept.get("a", large);
    const once = kept.bytes;
    forward(4_000);
    await kept.get("a", large);
    assert.equal(kept.bytes, once);
  });

  test("does not keep what alone is larger than all of it", async () => {
    const { kept } = open();
    await kept.get("huge", async () => Buffer.alloc(65 * MIB));
    assert.equal(kept.bytes, 0);
  });

  test("is given back when it is too old to be used", async () => {
    const { kept, forward } = open();
    await kept.get("old", large);
    forward(3_999);
    await kept.get("new", large);
    forward(1);
    const before = kept.bytes;
    kept.evictExpired();
    assert.equal(kept.bytes, before / 2);
    assert.equal(await kept.get("new", async () => "asked again").then(Buffer.isBuffer), true);
  });
});
