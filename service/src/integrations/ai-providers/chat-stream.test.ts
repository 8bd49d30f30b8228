import assert from "node:assert/strict";
import { test } from "node:test";
import { type Part, readChatStream } from "./chat-stream.ts";

const STOP = { choices: [{ delta: {}, finish_reason: "stop" }] };
const chunkOf = (delta: object) => ({ choices: [{ delta, finish_reason: null }] });

/** The parts of a stream of these chunks, without the raw ones. */
async function partsOf(...chunks: object[]): Promise<Part[]> {
  const frames = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  const body = new Response(`: a comment\n\n${frames.join("")}data: [DONE]\n\n`).body!;
  const parts: Part[] = [];
  await readChatStream(body, (part) => {
    if (part.type !== "raw") parts.push(part);
    return undefined;
  });
  return parts;
}

const deltasIn = (parts: Part[]) => parts.flatMap((part) => (part.type === "text-delta" ? part.delta : []));

test("content as a list: its text parts are joined", async () => {
  const content = [
    { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
    { type: "text", text: "Hello" },
  ];
  assert.deepEqual(deltasIn(await partsOf(chunkOf({ content }), STOP)), ["Hello"]);
});

test("reasoning and tool calls: are empty text deltas, because the model has begun", async () => {
  for (const delta of [{ reasoning_content: "hm" }, { reasoning: "hm" }, { tool_calls: [{ index: 0 }] }])
    assert.deepEqual(deltasIn(await partsOf(chunkOf({ content: null, ...delta }), STOP)), [""]);
});

test("role only, or empty fields: no part", async () => {
  const delta = { role: "assistant", content: "", reasoning: null, tool_calls: [] };
  assert.deepEqual(deltasIn(await partsOf(chunkOf(delta), chunkOf({}), STOP)), []);
});

test("refusal: is text, and the finish reason is content-filter", async () => {
  const parts = await partsOf(chunkOf({ content: null, refusal: "I would rather not." }), STOP);
  assert.deepEqual(deltasIn(parts), ["I would rather not."]);
  const end = parts.at(-1);
  assert.deepEqual(end?.type === "finish" && end.finishReason, { unified: "content-filter", raw: "stop" });
});

test("model and usage: may be in any chunk, and missing counts stay undefined", async () => {
  const usage = { prompt_tokens: 7, completion_tokens: null, prompt_tokens_details: { cached_tokens: 3 } };
  const parts = await partsOf({ model: "", choices: [] }, STOP, { model: "m-1", choices: [], usage });
  assert.deepEqual(parts, [
    { type: "response-metadata", modelId: "m-1" },
    {
      type: "finish",
      finishReason: { unified: "stop", raw: "stop" },
      usage: {
        inputTokens: { total: 7, noCache: undefined, cacheRead: 3, cacheWrite: undefined },
        outputTokens: { total: undefined, text: undefined, reasoning: undefined },
      },
    },
  ]);
});

test("invalid chunk: throws", async () => {
  await assert.rejects(partsOf({ what: "else" }));
});

test("stream without a finish reason: throws", async () => {
  for (const chunks of [[], [chunkOf({ content: "Hel" })]])
    await assert.rejects(partsOf(...chunks), /no end/);
});

test("line without an end: throws at 2 Mi characters", async () => {
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 65_536;
      controller.enqueue(new TextEncoder().encode(sent === 65_536 ? "data: " : "a".repeat(65_536)));
    },
  });
  const read = readChatStream(body, (part) => assert.fail(part.type));
  await assert.rejects(read, /max buffer size/);
  assert.ok(sent < 3 * 1024 * 1024);
});
