import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import type { NotifiedCache } from "../../platform/db/notifications.ts";
import { createKeyCache } from "./key-cache.ts";
import type { KeyRow } from "./queries.ts";

const OWNERS: Record<string, string> = { a: "ada", b: "ada", c: "cleo" };
const LOOKUPS = Object.keys(OWNERS);

/** A model of the database: versions of keys, a queue of notifications that the test delivers, and a connection. */
function modelDatabase() {
  let memory: NotifiedCache | null = null;
  let current = true;
  const committed = new Map(LOOKUPS.map((lookup) => [lookup, 1]));
  const notified = new Map(committed);
  const queue: { channel: string; payload: string; versions: Map<string, number> }[] = [];
  const cache = createKeyCache({
    areCurrent: () => current,
    register: (one) => {
      memory = one;
    },
  });
  const bump = (lookups: string[]) => {
    for (const lookup of lookups) committed.set(lookup, committed.get(lookup)! + 1);
  };
  const enqueue = (channel: string, payload: string) => {
    if (current) queue.push({ channel, payload, versions: new Map(committed) });
  };
  return {
    cache,
    notified,
    isCurrent: () => current,
    read: (lookup: string) =>
      ({ id: String(committed.get(lookup)), userId: OWNERS[lookup] }) as unknown as KeyRow,
    change(lookup: string) {
      bump([lookup]);
      enqueue("api_key_changed", lookup);
    },
    changeUser(userId: string) {
      bump(LOOKUPS.filter((lookup) => OWNERS[lookup] === userId));
      enqueue("user_changed", userId);
    },
    notify() {
      const notification = queue.shift();
      if (!notification) return;
      memory!.on[notification.channel]!(notification.payload);
      for (const [lookup, version] of notification.versions) notified.set(lookup, version);
    },
    lose() {
      current = false;
      queue.length = 0;
      memory!.clear();
    },
    regain() {
      if (current) return;
      current = true;
      for (const [lookup, version] of committed) notified.set(lookup, version);
    },
  };
}

const lookup = fc.constantFrom(...LOOKUPS);
const step = fc.oneof(
  { weight: 12, arbitrary: fc.record({ does: fc.constant("find" as const), lookup }) },
  {
    weight: 8,
    arbitrary: fc.record({ does: fc.constantFrom("query" as const, "answer" as const), at: fc.nat() }),
  },
  { weight: 6, arbitrary: fc.record({ does: fc.constant("change" as const), lookup }) },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant("changeUser" as const), user: fc.constantFrom("ada", "cleo") }),
  },
  { weight: 9, arbitrary: fc.record({ does: fc.constant("notify" as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom("lose" as const, "regain" as const) }) },
);

interface OpenQuery {
  lookup: string;
  row: KeyRow | null;
  answer: PromiseWithResolvers<KeyRow | undefined>;
}

test("key cache, random order of look-ups, queries, changes and notifications: no stale key", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: "max" }), async (steps) => {
      const { cache, ...db } = modelDatabase();
      const open: OpenQuery[] = [];
      const found: Promise<void>[] = [];
      const tooOld: string[] = [];
      const find = async (requested: string) => {
        const floor = db.isCurrent() ? db.notified.get(requested)! : Number(db.read(requested).id);
        const row = await cache.find(requested, () => {
          const one = { lookup: requested, row: null, answer: Promise.withResolvers<KeyRow | undefined>() };
          open.push(one);
          return one.answer.promise;
        });
        if (Number(row!.id) < floor)
          tooOld.push(`version ${row!.id} of ${requested} after notification of ${floor}`);
      };
      const query = (one: OpenQuery | undefined) => {
        if (one) one.row ??= db.read(one.lookup);
      };
      const answer = (one: OpenQuery | undefined) => {
        if (!one) return;
        query(one);
        open.splice(open.indexOf(one), 1);
        one.answer.resolve(one.row!);
      };
      for (const one of steps) {
        if (one.does === "find") found.push(find(one.lookup));
        else if (one.does === "query") query(open[one.at % open.length]);
        else if (one.does === "answer") answer(open[one.at % open.length]);
        else if (one.does === "change") db.change(one.lookup);
        else if (one.does === "changeUser") db.changeUser(one.user);
        else db[one.does]();
        await nextTurn();
      }
      for (const one of [...open]) answer(one);
      await Promise.all(found);
      assert.deepEqual(tooOld, []);
    }),
    { numRuns: runs(300) },
  );
});

function counting(cache: ReturnType<typeof createKeyCache>) {
  let queryCount = 0;
  return {
    queryCount: () => queryCount,
    find: (requested: string, row: KeyRow | undefined) =>
      cache.find(requested, async () => {
        queryCount++;
        return row;
      }),
  };
}

test("key cache: one query a key, another after a notification of the key or its owner", async () => {
  const { cache, ...db } = modelDatabase();
  const { find, queryCount } = counting(cache);
  const steps: [what: () => void, expected: number][] = [
    [() => {}, 1],
    [() => {}, 1],
    [() => db.change("b"), 1],
    [() => db.changeUser("cleo"), 1],
    [() => db.change("a"), 2],
    [() => db.changeUser("ada"), 3],
    [() => {}, 3],
  ];
  for (const [what, expected] of steps) {
    what();
    db.notify();
    await find("a", db.read("a"));
    assert.equal(queryCount(), expected);
  }
});

test("key cache, connection for notifications lost: caches nothing, and drops older entries", async () => {
  const { cache, ...db } = modelDatabase();
  const { find, queryCount } = counting(cache);
  await find("a", db.read("a"));
  db.lose();
  await find("a", db.read("a"));
  await find("a", db.read("a"));
  assert.equal(queryCount(), 3);
  db.regain();
  await find("a", db.read("a"));
  await find("a", db.read("a"));
  assert.equal(queryCount(), 4);
});

test("key cache: no entry for an unknown key, at most 10,000 entries", async () => {
  const { cache, ...db } = modelDatabase();
  const { find, queryCount } = counting(cache);
  await find("nobody", undefined);
  await find("nobody", undefined);
  assert.equal(queryCount(), 2);
  for (let at = 0; at <= 10_000; at++) await find(`key ${at}`, db.read("a"));
  const before = queryCount();
  await find("key 10000", db.read("a"));
  assert.equal(queryCount(), before, "the newest is known");
  await find("key 0", db.read("a"));
  assert.equal(queryCount(), before + 1, "the oldest gave its place");
});
