import assert from "node:assert/strict";
import { test } from "node:test";
import { createTextComparison } from "./text-similarity.ts";

const TEXT = "Act as a careful editor. Read {{text}} and list each mistake with its line.";

for (const [name, other, least, most] of [
  ["the same text in other case and spacing", TEXT.toUpperCase().replaceAll(" ", "\n  "), 1, 1],
  ["one word replaced", TEXT.replace("careful", "strict"), 0.5, 0.9],
  ["another text", "Write a haiku about rain, snow and wind in the mountains.", 0, 0],
  ["no words", "!?", 0, 0],
] as const) {
  test(`text similarity: ${name}`, () => {
    const similarity = createTextComparison(TEXT)(other);
    assert.ok(similarity >= least && similarity <= most, `${similarity}`);
  });
}
