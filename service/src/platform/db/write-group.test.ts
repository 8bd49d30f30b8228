import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { WriteGroup } from "./write-group.ts";

/** Statements that end when the test says so. */
function openGroup() {
  const statements: { items: string[]; end: PromiseWithResolvers<(string | undefined)[]> }[] = [];
  const refusals: unknown[] = [];
  const write = (items: readonly string[]) => {
    const end = Promise.withResolvers<(string | undefined)[]>();
    statements.push({ items: [...items], end });
    return end.promise;
  };
  const group = new WriteGroup<string, string>({
    writeOne: async (item) => (await write([item]))[0]!,
    writeMany: write,
    onRefused: (error) => void refusals.push(error),
  });
  const sent = () => statements.map(({ items }) => items.join(" "));
  const endAll = (at: number) =>
    statements[at]!.end.resolve(statements[at]!.items.map((item) => `${item} written`));
  return { group, statements, sent, endAll, refusals };
}

const written = (...items: string[]) => items.map((item) => `${item} written`);

test("writes that come while two statements run: share the next one", async () => {
  const { group, sent, endAll } = openGroup();
  const results = Promise.all(["a", "b", "c", "d", "e"].map((item) => group.write(item)));
  assert.deepEqual(sent(), ["a", "b"]);
  endAll(0);
  await nextTurn();
  assert.deepEqual(sent(), ["a", "b", "c d e"]);
  endAll(1);
  endAll(2);
  assert.deepEqual(await results, written("a", "b", "c", "d", "e"));
});

/** A group of three in its statement. */
async function openShared() {
  const opened = openGroup();
  const first = ["a", "b"].map((item) => opened.group.write(item));
  const shared = ["c", "d", "e"].map((item) => opened.group.write(item));
  opened.endAll(0);
  opened.endAll(1);
  await Promise.all(first);
  await nextTurn();
  return { ...opened, shared, statement: opened.statements[2]! };
}

test("item that a group leaves out: is written alone, and the others do not wait for it", async () => {
  const { shared, statement, sent, endAll } = await openShared();
  statement.end.resolve(["c written", undefined, "e written"]);
  assert.deepEqual(await Promise.all([shared[0], shared[2]]), written("c", "e"));
  assert.equal(sent()[3], "d");
  endAll(3);
  assert.equal(await shared[1], "d written");
});

test("group that PostgreSQL refuses: each item is written alone", async () => {
  const { shared, statement, statements, sent, endAll, refusals } = await openShared();
  statement.end.reject(Object.assign(new Error("refused"), { severity: "ERROR" }));
  await nextTurn();
  assert.deepEqual(sent().slice(3), ["c", "d", "e"]);
  const refused = assert.rejects(shared[1]!, /alone/);
  statements[4]!.end.reject(new Error("alone"));
  endAll(3);
  endAll(5);
  assert.deepEqual(await Promise.all([shared[0], shared[2]]), written("c", "e"));
  await refused;
  assert.equal(refusals.length, 1);
});

test("group with a lost connection: rejects and repeats nothing, because it may be committed", async () => {
  const { shared, statement, sent } = await openShared();
  statement.end.reject(new Error("Connection terminated unexpectedly"));
  for (const result of await Promise.allSettled(shared)) assert.equal(result.status, "rejected");
  assert.equal(sent().length, 3);
});

test("slow statements: others do not wait for them", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    const { group, sent, endAll } = openGroup();
    const results = Promise.all(["a", "b", "c"].map((item) => group.write(item)));
    assert.deepEqual(sent(), ["a", "b"]);
    mock.timers.tick(1_000);
    assert.deepEqual(sent(), ["a", "b", "c"]);
    for (const at of [0, 1, 2]) endAll(at);
    assert.deepEqual(await results, written("a", "b", "c"));
  } finally {
    mock.timers.reset();
  }
});
