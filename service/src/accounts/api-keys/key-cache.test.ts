import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { runs } from "../../../test/full-size.ts";
import type { NotifiedCache } from "../../platform/db/notifications.ts";
import { KeyCache } from "./key-cache.ts";
import type { KeyRow } from "./queries.ts";

const OWNERS: Record<string, string> = { a: "ada", b: "ada", c: "cleo" };
const LOOKUPS = Object.keys(OWNERS);

/** A database of versions, whose notices are told when the test says so, over a line that can be lost. */
function world() {
  let memory: NotifiedCache | null = null;
  let current = true;
  const committed = new Map(LOOKUPS.map((lookup) => [lookup, 1]));
  const told = new Map(committed);
  const queue: { channel: string; payload: string; versions: Map<string, number> }[] = [];
  const cache = new KeyCache({
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
    told,
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
    tell() {
      const notice = queue.shift();
      if (!notice) return;
      memory!.on[notice.channel]!(notice.payload);
      for (const [lookup, version] of notice.versions) told.set(lookup, version);
    },
    lose() {
      current = false;
      queue.length = 0;
      memory!.clear();
    },
    regain() {
      if (current) return;
      current = true;
      for (const [lookup, version] of committed) told.set(lookup, version);
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
  { weight: 9, arbitrary: fc.record({ does: fc.constant("tell" as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constantFrom("lose" as const, "regain" as const) }) },
);

interface Asked {
  lookup: string;
  row: KeyRow | null;
  answer: PromiseWithResolvers<KeyRow | undefined>;
}

test("in whatever order a look-up, its query, a change and its notice come, no key is older than what was told", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: "max" }), async (steps) => {
      const { cache, ...db } = world();
      const open: Asked[] = [];
      const found: Promise<void>[] = [];
      const tooOld: string[] = [];
      const find = async (wanted: string) => {
        const floor = db.isCurrent() ? db.told.get(wanted)! : Number(db.read(wanted).id);
        const row = await cache.find(wanted, () => {
          const one = { lookup: wanted, row: null, answer: Promise.withResolvers<KeyRow | undefined>() };
          open.push(one);
          return one.answer.promise;
        });
        if (Number(row!.id) < floor) tooOld.push(`version ${row!.id} of ${wanted} after ${floor} was told`);
      };
      const query = (one: Asked | undefined) => {
        if (one) one.row ??= db.read(one.lookup);
      };
      const answer = (one: Asked | undefined) => {
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
        await new Promise(setImmediate);
      }
      for (const one of [...open]) answer(one);
      await Promise.all(found);
      assert.deepEqual(tooOld, []);
    }),
    { numRuns: runs(300) },
  );
});

/** How often a look-up had to ask the database. */
function counting(cache: KeyCache) {
  let asked = 0;
  return {
    asked: () => asked,
    find: (wanted: string, row: KeyRow | undefined) =>
      cache.find(wanted, async () => {
        asked++;
        return row;
      }),
  };
}

test("a key is asked for once, and again after a notice about it or its owner, not after one about others", async () => {
  const { cache, ...db } = world();
  const { find, asked } = counting(cache);
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
    db.tell();
    await find("a", db.read("a"));
    assert.equal(asked(), expected);
  }
});

test("nothing is kept while notices are not heard, and nothing of before when they are again", async () => {
  const { cache, ...db } = world();
  const { find, asked } = counting(cache);
  await find("a", db.read("a"));
  db.lose();
  await find("a", db.read("a"));
  await find("a", db.read("a"));
  assert.equal(asked(), 3);
  db.regain();
  await find("a", db.read("a"));
  await find("a", db.read("a"));
  assert.equal(asked(), 4);
});

test("what does not exist is not kept, and of what does no more than ten thousand", async () => {
  const { cache, ...db } = world();
  const { find, asked } = counting(cache);
  await find("nobody", undefined);
  await find("nobody", undefined);
  assert.equal(asked(), 2);
  for (let at = 0; at <= 10_000; at++) await find(`key ${at}`, db.read("a"));
  const before = asked();
  await find("key 10000", db.read("a"));
  assert.equal(asked(), before, "the newest is known");
  await find("key 0", db.read("a"));
  assert.equal(asked(), before + 1, "the oldest gave its place");
});
