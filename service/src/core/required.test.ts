import assert from "node:assert/strict";
import { test } from "node:test";
import { firstOf, lastOf, ownValue, required } from "./required.ts";

test("required: returns existing values, also falsy ones, and names a missing one", () => {
  assert.deepEqual(
    [0, "", false].map((value) => required(value, "it")),
    [0, "", false],
  );
  for (const missing of [null, undefined])
    assert.throws(() => required(missing, "the order"), /the order is missing/);
});

test("firstOf and lastOf, empty list: throw", () => {
  assert.deepEqual([firstOf([1, 2]), lastOf([1, 2])], [1, 2]);
  assert.throws(() => firstOf([]), /first item/);
  assert.throws(() => lastOf([]), /last item/);
});

test("ownValue, name of the prototype: undefined", () => {
  assert.equal(ownValue({ a: 1 }, "a"), 1);
  assert.equal(ownValue({ a: 1 }, "constructor"), undefined);
});
