import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type PushSource, readEach } from "./read-each.ts";

test("readEach: ends when the source has cleaned up, and passes on an error of that", async () => {
  const order: string[] = [];
  const cleanUp = async (fails: boolean) => {
    await nextTurn();
    order.push("cleaned up");
    if (fails) throw new Error("not cleaned up");
  };
  async function* source(fails: boolean) {
    try {
      yield "one";
    } finally {
      await cleanUp(fails);
    }
  }
  const leave = () => {
    throw new Error("left");
  };
  const leaveLater = () => Promise.reject(new Error("left"));
  for (const onItem of [leave, leaveLater]) {
    await assert.rejects(readEach(source(false), onItem), { message: "left" });
    order.push("ended");
    await assert.rejects(readEach(source(true), onItem), { message: "not cleaned up" });
  }
  assert.deepEqual(order, ["cleaned up", "ended", "cleaned up", "cleaned up", "ended", "cleaned up"]);
});

test("readEach: items that pass themselves on are not iterated", async () => {
  const items: PushSource<string> = {
    async readEach(onItem) {
      await onItem("one");
    },
  };
  const collected: string[] = [];
  await readEach(items, (item) => void collected.push(item));
  assert.deepEqual(collected, ["one"]);
});
