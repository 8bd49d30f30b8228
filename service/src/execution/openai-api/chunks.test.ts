import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { StreamedEvent } from "../../platform/http/route.ts";
import { toChunks } from "./chunks.ts";

const usage = { promptTokens: 1, completionTokens: 2, totalTokens: 3 };
const result = { executionId: "exec_1", output: "One", usage, metadata: { finishReason: "stop" } };
const completion = { id: "exec_1", model: "prod_1@1.0.0", created: new Date(0), includeUsage: true };

async function* events(): AsyncGenerator<StreamedEvent> {
  yield { type: "output.delta", data: JSON.stringify({ text: "One" }) };
  yield { type: "execution.completed", data: JSON.stringify(result) };
}

test("toChunks: a busy reader gets each chunk when it has taken the one before", async () => {
  const collected: string[] = [];
  let busy = 0;
  await toChunks(events(), completion).readEach(async ({ data = "" }) => {
    assert.equal(++busy, 1);
    collected.push(data);
    await nextTurn();
    busy--;
  });
  assert.equal(collected.length, 4);
  assert.match(collected[0]!, /"content":"One"/);
  assert.match(collected[2]!, /"total_tokens":3/);
  assert.equal(collected[3], "[DONE]");
});

for (const [how, fail] of [
  ["while it is busy", () => nextTurn().then(() => Promise.reject(new Error("gone")))],
  [
    "at once",
    () => {
      throw new Error("gone");
    },
  ],
] as const)
  test(`toChunks: a reader that fails between two chunks of an event, ${how}, gets no further chunk`, async () => {
    let isSourceClosed = false;
    async function* source() {
      try {
        yield* events();
        yield { type: "output.delta", data: JSON.stringify({ text: "never read" }) };
      } finally {
        isSourceClosed = true;
      }
    }
    const collected: string[] = [];
    const reading = toChunks(source(), completion).readEach(({ data = "" }) => {
      collected.push(data);
      // The second of the three chunks of the last event.
      return collected.length === 3 ? fail() : undefined;
    });
    await assert.rejects(reading, /gone/);
    assert.equal(collected.length, 3);
    assert.equal(isSourceClosed, true);
  });
