import assert from "node:assert/strict";
import { test } from "node:test";
import { type Part, readChatStream } from "./chat-stream.ts";

const STOP = { choices: [{ delta: {}, finish_reason: "stop" }] };
const said = (delta: object) => ({ choices: [{ delta, finish_reason: null }] });

/** What is told of a stream of these chunks, but for the chunks themselves. */
async function told(...chunks: object[]): Promise<Part[]> {
  const frames = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  const body = new Response(`: a comment\n\n${frames.join("")}data: [DONE]\n\n`).body!;
  const parts: Part[] = [];
  for await (const part of readChatStream(body)) if (part.type !== "raw") parts.push(part);
  return parts;
}

const deltasIn = (parts: Part[]) => parts.flatMap((part) => (part.type === "text-delta" ? part.delta : []));

test("content that comes as a list is the text that is in it", async () => {
  const content = [
    { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
    { type: "text", text: "Hello" },
  ];
  assert.deepEqual(deltasIn(await told(said({ content }), STOP)), ["Hello"]);
});

test("reasoning and calls of tools are no text, and yet the model has begun", async () => {
  for (const delta of [{ reasoning_content: "hm" }, { reasoning: "hm" }, { tool_calls: [{ index: 0 }] }])
    assert.deepEqual(deltasIn(await told(said({ content: null, ...delta }), STOP)), [""]);
});

test("a role alone, or nothing in any field, is no beginning", async () => {
  const delta = { role: "assistant", content: "", reasoning: null, tool_calls: [] };
  assert.deepEqual(deltasIn(await told(said(delta), said({}), STOP)), []);
});

test("a refusal is said, and filtered content although the model stopped by itself", async () => {
  const parts = await told(said({ content: null, refusal: "I would rather not." }), STOP);
  assert.deepEqual(deltasIn(parts), ["I would rather not."]);
  const end = parts.at(-1);
  assert.deepEqual(end?.type === "finish" && end.finishReason, { unified: "content-filter", raw: "stop" });
});

test("model and counts may come in any chunk, and a count that is missing is not nothing", async () => {
  const usage = { prompt_tokens: 7, completion_tokens: null, prompt_tokens_details: { cached_tokens: 3 } };
  const parts = await told({ model: "", choices: [] }, STOP, { model: "m-1", choices: [], usage });
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

test("what is no chunk breaks the stream", async () => {
  await assert.rejects(told({ what: "else" }));
});

test("a stream that never tells why it ends is broken", async () => {
  for (const chunks of [[], [said({ content: "Hel" })]]) await assert.rejects(told(...chunks), /no end/);
});

test("a line without an end: the stream is broken off at 2 Mi characters", async () => {
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 65_536;
      controller.enqueue(new TextEncoder().encode(sent === 65_536 ? "data: " : "a".repeat(65_536)));
    },
  });
  const read = async () => {
    for await (const part of readChatStream(body)) assert.fail(part.type);
  };
  await assert.rejects(read, /max buffer size/);
  assert.ok(sent < 3 * 1024 * 1024);
});
