import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { oneOf } from "../../../test/full-size.ts";
import { GOOD_KEY, type Next, refusedUrl } from "../../../test/provider-server.ts";
import type { Break } from "../../../test/provider-stream.ts";
import { openTestProviders, PROMPT_MARKER, type TestProviderOptions } from "../../../test/providers.ts";
import {
  type AiProviders,
  type ProviderAnswer,
  type ProviderCall,
  ProviderError,
  type ProviderId,
} from "./ai-provider.ts";
import { readPieces } from "./read-pieces.ts";
import { createSandbox } from "./sandbox.ts";

const formats = ["openai", "openai-compatible", "anthropic", "google", "mistral"] as const;
const callTo = (provider: ProviderId, more: Partial<ProviderCall> = {}): ProviderCall => ({
  ...{ provider, apiKey: GOOD_KEY, baseUrl: null, model: "some-model", options: {} },
  messages: [{ role: "user", content: `Do ${PROMPT_MARKER}` }],
  signal: new AbortController().signal,
  ...more,
});

interface StreamResult {
  pieces: string[];
  answer?: ProviderAnswer;
  fault?: ProviderError;
}

async function readStream(providers: AiProviders, call: ProviderCall): Promise<StreamResult> {
  const pieces: string[] = [];
  try {
    const answer = await providers.stream(call, (piece) => {
      pieces.push(piece);
      return undefined;
    });
    return { pieces, answer };
  } catch (fault) {
    assert.ok(fault instanceof ProviderError, inspect(fault));
    const everything = inspect(fault, { depth: Number.POSITIVE_INFINITY, showHidden: true });
    for (const secret of [PROMPT_MARKER, GOOD_KEY]) assert.ok(!everything.includes(secret), everything);
    return { pieces, fault };
  }
}

for (const provider of formats) {
  test(`${provider}: stream: yields pieces and returns model, finish reason and usage`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    const usage = { input: 100, output: 20 };
    server.next({ stream: { pieces: ["Hel", "lo ", "you"], usage, model: "some-model-2026" } });
    const { pieces, answer } = await readStream(providers, callTo(provider));
    assert.deepEqual(pieces, ["Hel", "lo ", "you"]);
    assert.deepEqual(answer, {
      output: "Hello you",
      model: "some-model-2026",
      finishReason: "stop",
      usage: { promptTokens: 100, completionTokens: 20, totalTokens: 120 },
      attempts: 1,
    });
  });

  test(`${provider}: characters split between chunks: are joined`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    const pieces = ["Größe ", "—€ ", "漢字 ", "👩‍🚀"];
    server.next({ stream: { pieces, chunk: 3 } });
    assert.deepEqual((await readStream(providers, callTo(provider))).pieces, pieces);
  });

  test(`${provider}: answer cut at maxTokens: is returned with its finish reason`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    server.next({ stream: { stop: "length" } });
    assert.equal((await readStream(providers, callTo(provider))).answer?.finishReason, "length");
  });

  interface Row {
    reply: Next;
    code: string;
    pieces?: string[];
    attempts?: number;
    phase?: string;
    setting?: TestProviderOptions;
  }
  const broken = (breaks: Break, after: number): Next => ({ stream: { breaks, after } });
  const bad = { code: "PROVIDER_BAD_RESPONSE" };
  const failed = { code: "PROVIDER_ERROR" };
  const timedOut = { code: "PROVIDER_TIMEOUT" };
  const rows: Record<string, Row> = {
    "connection cut before the output": { reply: broken("cut", 0), ...bad },
    "connection cut within the output": { reply: broken("cut", 1), ...bad, pieces: ["An "] },
    "connection cut within a frame": { reply: broken("cut-in-frame", 1), ...bad, pieces: ["An "] },
    "clean end within a frame": { reply: broken("close", 1), ...bad, pieces: ["An "] },
    "end without a finish reason": { reply: broken("no-finish", 2), ...bad, pieces: ["An ", "answer."] },
    "empty stream": { reply: broken("no-finish", 0), ...bad },
    "malformed frame, then a clean end": { reply: broken("bad-json", 1), ...bad, pieces: ["An "] },
    "malformed first frame": { reply: broken("bad-json", 0), ...bad },
    "error as first frame": { reply: broken("error", 0), ...failed, attempts: 3 },
    "error as later frame": { reply: broken("error", 1), ...failed, pieces: ["An "] },
    "silence within the output": {
      ...{ reply: broken("stall", 1), ...timedOut, pieces: ["An "] },
      ...{ phase: "idle", setting: { limits: { bodyIdleMs: 100 } } },
    },
    "no response": {
      reply: "hang",
      ...timedOut,
      phase: "first_byte",
      setting: { limits: { headersMs: 60 } },
    },
    "502 in HTML": { reply: { status: 502, body: "<h1>Bad gateway</h1>" }, ...failed, attempts: 3 },
    "200 in HTML": {
      reply: { status: 200, headers: { "content-type": "text/html" }, body: "<p>Hi</p>" },
      ...bad,
    },
    "200 with an error body": {
      ...{ reply: { status: 200, body: { error: { code: 402, message: "Insufficient credits" } } } },
      code: "PROVIDER_QUOTA_EXHAUSTED",
    },
    "200 with another body": { reply: { status: 200, body: { what: PROMPT_MARKER } }, ...bad },
    "account without credit": { reply: "quota", code: "PROVIDER_QUOTA_EXHAUSTED" },
    "too long prompt": { reply: "context", code: "CONTEXT_LENGTH_EXCEEDED" },
    "filtered answer": { reply: "filter", code: "CONTENT_FILTERED" },
    "lost connection": { reply: "reset", ...bad },
  };
  // The total limit must be longer than the pause between two comments may take on a busy machine.
  if (oneOf(formats, 1).includes(provider))
    rows["endless comments"] = {
      ...{ reply: broken("trickle", 1), ...timedOut, pieces: ["An "] },
      ...{ phase: "total", setting: { deadlines: { totalMs: 1_000 }, limits: { bodyIdleMs: 400 } } },
    };
  for (const [when, { reply, code, pieces = [], attempts = 1, phase, setting }] of Object.entries(rows)) {
    test(`${provider}: ${when}: ${code} after ${attempts} calls, with the pieces before`, async (t) => {
      const { server, providers } = await openTestProviders(t, setting);
      for (let at = 0; at < attempts; at++) server.next(reply);
      const { fault, pieces: actual } = await readStream(providers, callTo(provider));
      assert.deepEqual(
        [fault?.code, fault?.attempts, fault?.info.phase],
        [code, attempts, phase],
        inspect(fault),
      );
      assert.deepEqual(actual, pieces);
      assert.equal(server.requests.length, attempts);
    });
  }

  test(`${provider}: failure before the first piece: is retried, and the answer counts the attempts`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    server.next({ status: 503 });
    server.next({ status: 429, headers: { "retry-after": "1" } });
    const { answer, pieces } = await readStream(providers, callTo(provider));
    assert.deepEqual([answer?.attempts, pieces.join("")], [3, "An answer."]);
  });

  test(`${provider}: reader that stops: ends the request`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    server.next({ stream: { breaks: "stall", after: 1 } });
    const stream = readPieces(providers, callTo(provider));
    assert.equal((await stream.next()).value, "An ");
    await stream.return(undefined as never);
    await server.clientGone;
  });

  test(`${provider}: aborted call: rejects with the signal's reason, and the request ends`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    const caller = new AbortController();
    server.next({ stream: { breaks: "stall", after: 1 } });
    const stream = readPieces(providers, callTo(provider, { signal: caller.signal }));
    assert.equal((await stream.next()).value, "An ");
    const next = stream.next();
    caller.abort(new Error("gone"));
    await assert.rejects(next, { message: "gone" });
    await server.clientGone;
  });
}

test("implausible usage: is estimated", async (t) => {
  for (const provider of ["openai", "google"] as const) {
    const { server, providers } = await openTestProviders(t);
    for (const usage of [
      { input: -5, output: 2 ** 40 },
      { input: 1.5, output: -0.5 },
    ]) {
      server.next({ stream: { pieces: ["twelve bytes"], usage } });
      const { answer } = await readStream(
        providers,
        callTo(provider, { messages: [{ role: "user", content: "8 bytes." }] }),
      );
      assert.deepEqual(answer?.usage, {
        promptTokens: 2,
        completionTokens: 3,
        totalTokens: 5,
        estimated: true,
      });
    }
  }
});

test("refused connection: PROVIDER_ERROR after three attempts", async (t) => {
  const { providers } = await openTestProviders(t);
  const { fault } = await readStream(providers, callTo("openai", { baseUrl: await refusedUrl() }));
  assert.deepEqual([fault?.code, fault?.info.reason, fault?.attempts], ["PROVIDER_ERROR", "unreachable", 3]);
});

test("stream that is not read: the provider sends no more than the buffers hold", async (t) => {
  const { server, providers } = await openTestProviders(t, { limits: { maxResponseBytes: 100_000_000 } });
  let sent = 0;
  const noteSent = (at: number) => {
    sent = at;
  };
  const pieces = Array.from({ length: 600 }, () => "x".repeat(100_000));
  server.next({ stream: { pieces, gate: async (at) => noteSent(at) } });
  const stream = readPieces(providers, callTo("openai-compatible"));
  await stream.next();
  const reached = await settled(() => sent);
  assert.ok(reached < pieces.length, `${reached} pieces of 100 kB were read without a reader`);
  let characters = pieces[0]!.length;
  const readOn = async () => {
    for (; ; characters += pieces[0]!.length) assert.equal((await stream.next()).value, pieces[0]);
  };
  await assert.rejects(readOn(), ({ code, info: facts }: ProviderError) => {
    assert.deepEqual([code, facts.reason], ["PROVIDER_BAD_RESPONSE", "answer_too_long"]);
    return true;
  });
  assert.ok(characters > 4_000_000 && characters <= 4 * 1024 * 1024, `${characters} characters were read`);
});

const completion = {
  model: "m-2",
  choices: [
    { message: { role: "assistant", content: "Whole.", reasoning_content: "Hm." }, finish_reason: "stop" },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 2 },
};

test("complete answer instead of a stream: is read, with its reasoning in the usage", async (t) => {
  const { server, providers } = await openTestProviders(t);
  server.next({ status: 200, body: completion });
  const { answer, pieces } = await readStream(providers, callTo("openai-compatible"));
  assert.deepEqual([pieces, answer?.model, answer?.usage.totalTokens], [["Whole."], "m-2", 5]);
});

test("complete answer or event of more lists than are parsed: refused; in a text they do not count", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const quotes = '"[{'.repeat(50_001);
  const choices = [{ message: { role: "assistant", content: quotes }, finish_reason: "stop" }];
  server.next({ status: 200, body: { ...completion, choices } });
  const quoted = await readStream(providers, callTo("openai-compatible"));
  assert.equal(quoted.answer?.output.length, quotes.length);
  // To parse megabytes of them would block the process for seconds.
  const lists = "[".repeat(50_001) + "]".repeat(50_001);
  server.next({ status: 200, body: `{"lists":${lists},${JSON.stringify(completion).slice(1)}` });
  const refused = await readStream(providers, callTo("openai-compatible"));
  assert.equal(refused.fault?.code, "PROVIDER_BAD_RESPONSE");
  const event = `{"lists":${lists},"choices":[{"delta":{"content":"Whole."},"finish_reason":"stop"}]}`;
  const headers = { "content-type": "text/event-stream" };
  server.next({ status: 200, headers, body: `data: ${event}\n\ndata: [DONE]\n\n` });
  const streamed = await readStream(providers, callTo("openai-compatible"));
  assert.deepEqual([streamed.pieces, streamed.fault?.code], [[], "PROVIDER_BAD_RESPONSE"]);
});

test("timeoutMs: also limits the provider's silence", async (t) => {
  const setting = { limits: { bodyIdleMs: 20 } };
  const gate = () => new Promise((resolve) => setTimeout(resolve, 60));
  const { server, providers } = await openTestProviders(t, setting);
  server.next({ stream: { gate } });
  assert.equal((await readStream(providers, callTo("openai"))).fault?.info.phase, "idle");
  server.next({ stream: { gate } });
  assert.equal(
    (await readStream(providers, callTo("openai", { timeoutMs: 10_000 }))).answer?.output,
    "An answer.",
  );
  server.next("hang");
  assert.equal((await readStream(providers, callTo("openai", { timeoutMs: 50 }))).fault?.info.phase, "total");
});

/** Resolves with the value when it has not changed for a while. */
async function settled(read: () => number): Promise<number> {
  for (let last = -1; ; ) {
    const value = read();
    if (value === last) return value;
    last = value;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const sandboxed = (model: string): ProviderCall => callTo("sandbox", { model, apiKey: "" });

test("sandbox: streams the same answer as run returns", async () => {
  const sandbox = createSandbox({ sleep: async () => {} });
  for (const model of ["sandbox", "sandbox-echo", "sandbox-slow"]) {
    const { pieces, answer } = await readStream(sandbox, sandboxed(model));
    assert.deepEqual(answer, await sandbox.run(sandboxed(model)));
    assert.ok(pieces.length > 2);
    assert.equal(pieces.join(""), answer?.output);
  }
});

test("sandbox-slow: spreads its five seconds over the pieces", async () => {
  const sleeps: number[] = [];
  await readStream(createSandbox({ sleep: async (ms) => void sleeps.push(ms) }), sandboxed("sandbox-slow"));
  assert.ok(sleeps.length > 4);
  assert.ok(sleeps.every((ms) => ms === 500));
});

for (const model of ["sandbox-cut", "sandbox-badsse"])
  test(`${model} stream fails after half of the answer`, async () => {
    const { pieces, fault } = await readStream(createSandbox(), sandboxed(model));
    assert.ok(pieces.length > 2);
    assert.equal(fault?.code, "PROVIDER_BAD_RESPONSE");
  });

for (const [model, code] of [
  ["sandbox-429", "PROVIDER_RATE_LIMITED"],
  ["sandbox-500", "PROVIDER_ERROR"],
  ["sandbox-401", "PROVIDER_KEY_INVALID"],
  ["sandbox-filter", "CONTENT_FILTERED"],
  ["sandbox-context", "CONTEXT_LENGTH_EXCEEDED"],
] as const)
  test(`${model} stream fails before the first piece`, async () => {
    const { pieces, fault } = await readStream(createSandbox(), sandboxed(model));
    assert.deepEqual([pieces, fault?.code], [[], code]);
  });
