import assert from "node:assert/strict";
import { test } from "node:test";
import { type PushSource, readEach } from "./read-each.ts";

test("readEach: items that pass themselves on are not iterated", async () => {
  const items: PushSource<string> = {
    async readEach(onItem) {
      await onItem("one");
    },
    [Symbol.asyncIterator]: () => assert.fail("iterated"),
  };
  const collected: string[] = [];
  await readEach(items, (item) => void collected.push(item));
  assert.deepEqual(collected, ["one"]);
});
