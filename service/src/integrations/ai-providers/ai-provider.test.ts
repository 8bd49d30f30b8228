import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { embeddingProviders } from "@stoa/contract";
import { JUDGE_INSTRUCTIONS, toJudgeMessage } from "@stoa/evaluation/judge-prompt";
import { readJudgeAnswer } from "@stoa/evaluation/judgment";
import {
  GOOD_KEY,
  type Misbehaviour,
  type ProviderServer,
  type Raw,
  refusedUrl,
  startProviderServer,
} from "../../../test/provider-server.ts";
import {
  formats,
  openTestProviders,
  PROMPT_MARKER,
  providerCall,
  providerErrorOf,
  type TestProviderOptions,
} from "../../../test/providers.ts";
import { TargetTimeout } from "../egress/guarded-fetch.ts";
import {
  type AiProviders,
  CallProgress,
  type EmbeddingCall,
  type ProviderCall,
  type ProviderId,
} from "./ai-provider.ts";
import { createSandbox, withSandbox } from "./sandbox.ts";
import { createSdkProviders } from "./sdk-providers.ts";

const lastOf = (server: ProviderServer) => server.requests.at(-1)!;

for (const provider of formats) {
  test(`${provider}: answer: has text, model, finish reason and usage`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    const usage = { input: 100, output: 20, cached: 40 };
    server.next({ answer: { text: "Hello", usage, model: "some-model" } });
    const answer = await providers.run(providerCall(provider));
    assert.deepEqual(answer, {
      output: "Hello",
      model: "some-model",
      finishReason: "stop",
      usage: { promptTokens: 100, completionTokens: 20, totalTokens: 120, cachedTokens: 40 },
      attempts: 1,
    });
  });

  test(`${provider}: request: contains model, messages with roles, and options`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    await providers.run(providerCall(provider, { options: { temperature: 0.5, maxTokens: 77 } }));
    const sent = JSON.stringify(lastOf(server).body) + lastOf(server).url;
    for (const part of ["some-model", "Instructions: ", "Do ", "0.5", "77"])
      assert.ok(sent.includes(part), part);
  });

  test(`${provider}: answer cut at maxTokens: is returned with its finish reason`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    server.next({ answer: { text: "Half an", stop: "length" } });
    const { output, finishReason } = await providers.run(providerCall(provider));
    assert.deepEqual({ output, finishReason }, { output: "Half an", finishReason: "length" });
  });

  test(`${provider}: partly filtered answer: is returned with its finish reason`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    server.next({ answer: { text: "Some text", stop: "filter" } });
    const { output, finishReason } = await providers.run(providerCall(provider));
    assert.deepEqual({ output, finishReason }, { output: "Some text", finishReason: "content_filter" });
  });

  test(`${provider}: answer without a finish reason: PROVIDER_BAD_RESPONSE`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    server.next({ answer: { stop: null } });
    assert.equal((await providerErrorOf(providers, providerCall(provider))).code, "PROVIDER_BAD_RESPONSE");
  });

  test(`${provider}: unknown key: PROVIDER_KEY_INVALID`, async (t) => {
    const { providers } = await openTestProviders(t);
    const fault = await providerErrorOf(providers, providerCall(provider, { apiKey: "some-wrong-key" }));
    assert.equal(fault.code, "PROVIDER_KEY_INVALID");
    assert.deepEqual({ provider: fault.provider, attempts: fault.attempts }, { provider, attempts: 1 });
  });

  test(`${provider}: verify: valid, invalid or unreachable`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    const key = { provider, apiKey: GOOD_KEY, baseUrl: null };
    assert.equal(await providers.verify(key), "valid");
    assert.equal(await providers.verify({ ...key, apiKey: "some-wrong-key" }), "invalid");
    server.nextListing({ status: 403 });
    assert.equal(await providers.verify(key), "valid");
    server.nextListing({ status: 500 });
    assert.equal(await providers.verify(key), "unreachable");
    assert.equal(await providers.verify({ ...key, baseUrl: await refusedUrl() }), "unreachable");
  });
}

interface Row {
  when: string;
  reply: Misbehaviour | Raw;
  code: string;
  /** One reply for each expected attempt. */
  attempts?: number;
  details?: Record<string, unknown>;
}

const echo = {
  error: { message: `You sent ${PROMPT_MARKER} with ${GOOD_KEY}`, type: "error", status: "X", code: 1 },
};

const faultTable: Row[] = [
  { when: "403", reply: { status: 403, body: echo }, code: "PROVIDER_PERMISSION_DENIED" },
  { when: "402", reply: { status: 402, body: echo }, code: "PROVIDER_QUOTA_EXHAUSTED" },
  { when: "account without credit", reply: "quota", code: "PROVIDER_QUOTA_EXHAUSTED" },
  { when: "too long prompt", reply: "context", code: "CONTEXT_LENGTH_EXCEEDED" },
  { when: "too large request", reply: { status: 413, body: echo }, code: "CONTEXT_LENGTH_EXCEEDED" },
  {
    when: "unknown model",
    reply: "no-model",
    code: "PROVIDER_NOT_SUPPORTED",
    details: { reason: "model_not_found" },
  },
  { when: "filtered answer", reply: "filter", code: "CONTENT_FILTERED", details: { stage: "output" } },
  {
    when: "429 with Retry-After",
    reply: { status: 429, headers: { "retry-after": "30" }, body: echo },
    code: "PROVIDER_RATE_LIMITED",
    details: { retryAfterSeconds: 30 },
  },
  {
    when: "429 without Retry-After",
    reply: { status: 429, body: echo },
    code: "PROVIDER_RATE_LIMITED",
    details: { retryAfterSeconds: 10 },
  },
  {
    when: "500",
    reply: { status: 500, body: echo },
    code: "PROVIDER_ERROR",
    attempts: 3,
    details: { status: 500 },
  },
  { when: "529 in HTML", reply: { status: 529, body: "<h1>busy</h1>" }, code: "PROVIDER_ERROR", attempts: 3 },
  {
    when: "unknown refusal",
    reply: { status: 422, body: echo },
    code: "PROVIDER_ERROR",
    details: { status: 422 },
  },
  { when: "404 in HTML", reply: { status: 404, body: "<h1>?</h1>" }, code: "PROVIDER_ERROR" },
  { when: "redirect", reply: { status: 307, headers: { location: "/" } }, code: "PROVIDER_BAD_RESPONSE" },
  { when: "broken JSON", reply: "bad-json", code: "PROVIDER_BAD_RESPONSE" },
  {
    when: "answer without a choice",
    reply: { status: 200, body: { id: "1", created: 1, model: "m", choices: [] } },
    code: "PROVIDER_BAD_RESPONSE",
  },
  { when: "other JSON", reply: { status: 200, body: { echo } }, code: "PROVIDER_BAD_RESPONSE" },
  {
    when: "HTML page",
    reply: { status: 200, body: `<p>${PROMPT_MARKER}</p>` },
    code: "PROVIDER_BAD_RESPONSE",
  },
  { when: "broken answer", reply: "cut", code: "PROVIDER_BAD_RESPONSE" },
  { when: "lost connection", reply: "reset", code: "PROVIDER_BAD_RESPONSE" },
];

for (const provider of formats) {
  for (const { when, reply, code, attempts = 1, details = {} } of faultTable) {
    test(`${provider}: ${when}: ${code} after ${attempts === 1 ? "one call" : `${attempts} calls`}`, async (t) => {
      const { server, providers } = await openTestProviders(t);
      for (let i = 0; i < attempts; i++) server.next(reply);
      const fault = await providerErrorOf(providers, providerCall(provider));
      assert.equal(fault.code, code, inspect(fault));
      assert.equal(fault.attempts, attempts);
      assert.equal(server.requests.length, attempts);
      const actual = Object.fromEntries(Object.keys(details).map((name) => [name, fault.details[name]]));
      assert.deepEqual(actual, details);
      assert.equal(fault.details.source, "provider");
    });
  }

  const deadlines: { when: string; reply: Misbehaviour; setting: TestProviderOptions; phase: string }[] = [
    { when: "no response", reply: "hang", setting: { limits: { headersMs: 30 } }, phase: "first_byte" },
    {
      when: "silence within the answer",
      reply: "stall",
      setting: { limits: { bodyIdleMs: 30 } },
      phase: "idle",
    },
    { when: "too long call", reply: "hang", setting: { deadlines: { totalMs: 50 } }, phase: "total" },
    {
      when: "too long body",
      reply: "stall",
      setting: { deadlines: { totalMs: 50 } },
      phase: "total",
    },
  ];
  for (const { when, reply, setting, phase } of deadlines) {
    test(`${provider}: ${when}: PROVIDER_TIMEOUT in phase ${phase} without a retry`, async (t) => {
      const { server, providers } = await openTestProviders(t, setting);
      // The first call loads the SDK, which takes longer than a short deadline.
      await createSdkProviders({ fetch: async () => Response.error() })
        .run(providerCall(provider))
        .catch(() => {});
      server.next(reply);
      const fault = await providerErrorOf(providers, providerCall(provider));
      assert.deepEqual([fault.code, fault.details.phase, fault.attempts], ["PROVIDER_TIMEOUT", phase, 1]);
    });
  }

  test(`${provider}: refused connection: PROVIDER_ERROR after three attempts`, async (t) => {
    const { providers, sleeps } = await openTestProviders(t);
    const fault = await providerErrorOf(providers, providerCall(provider, { baseUrl: await refusedUrl() }));
    assert.deepEqual(
      [fault.code, fault.details.reason, fault.attempts],
      ["PROVIDER_ERROR", "unreachable", 3],
    );
    assert.deepEqual(sleeps, [250, 500], "half of 500 ms and of 1 s");
  });
}

test("connect timeout: is thrown after two retries", async (t) => {
  const { providers } = await openTestProviders(t, {
    fetch: async () => {
      throw new TargetTimeout("connect");
    },
  });
  const fault = await providerErrorOf(providers, providerCall("openai"));
  assert.deepEqual([fault.code, fault.details.phase, fault.attempts], ["PROVIDER_TIMEOUT", "connect", 3]);
});

test("5xx: is retried, and the answer counts the attempts", async (t) => {
  const { server, providers } = await openTestProviders(t);
  server.next({ status: 503 });
  server.next({ status: 500 });
  assert.equal((await providers.run(providerCall("anthropic"))).attempts, 3);
});

test("429 with a Retry-After of at most 10 s: is retried after it", async (t) => {
  const { server, providers, sleeps } = await openTestProviders(t);
  server.next({ status: 429, headers: { "retry-after": "7" } });
  assert.equal((await providers.run(providerCall("openai"))).attempts, 2);
  assert.deepEqual(sleeps, [7_000]);
});

test("429 with a Retry-After beyond the deadline: is thrown at once", async (t) => {
  const { server, providers, sleeps } = await openTestProviders(t, { deadlines: { totalMs: 4_000 } });
  server.next({ status: 429, headers: { "retry-after": "5" } });
  const fault = await providerErrorOf(providers, providerCall("openai"));
  assert.deepEqual([fault.code, fault.retryAfterSeconds], ["PROVIDER_RATE_LIMITED", 5]);
  assert.deepEqual(sleeps, []);
});

test("Retry-After: may be a date, milliseconds, or Google's retryDelay", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const begun = Date.now();
  const inAMinute = new Date(begun + 60_000).toUTCString();
  server.next({ status: 429, headers: { "retry-after": inAMinute } });
  const byDate = (await providerErrorOf(providers, providerCall("openai"))).retryAfterSeconds!;
  const least = 59 - Math.ceil((Date.now() - begun) / 1_000);
  assert.ok(byDate >= least && byDate <= 60, String(byDate));
  server.next({ status: 429, headers: { "retry-after-ms": "20500" } });
  assert.equal((await providerErrorOf(providers, providerCall("openai"))).retryAfterSeconds, 21);
  const error = {
    code: 429,
    status: "RESOURCE_EXHAUSTED",
    message: "Slow",
    details: [{ retryDelay: "42s" }],
  };
  server.next({ status: 429, body: { error } });
  assert.equal((await providerErrorOf(providers, providerCall("google"))).retryAfterSeconds, 42);
});

test("negative Retry-After: is ignored", async (t) => {
  const { server, providers, sleeps } = await openTestProviders(t);
  for (const header of [{ "retry-after": "-5" }, { "retry-after": "-0.5" }, { "retry-after-ms": "-1" }]) {
    server.next({ status: 429, headers: header });
    assert.equal((await providerErrorOf(providers, providerCall("openai"))).retryAfterSeconds, 10);
  }
  assert.deepEqual(sleeps, [], "no retry");
});

test("Retry-After over a day: is one day", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const headers = [
    { "retry-after": "9".repeat(400) },
    { "retry-after": "99999999999999999999999" },
    { "retry-after": "Fri, 31 Dec 9999 23:59:59 GMT" },
    { "retry-after-ms": "1e308" },
  ];
  const actual: unknown[] = [];
  for (const header of headers) {
    server.next({ status: 429, headers: header });
    actual.push((await providerErrorOf(providers, providerCall("openai"))).retryAfterSeconds);
  }
  assert.deepEqual(actual, [10, 86_400, 86_400, 86_400]);
});

test("long error message: is classified quickly", async (t) => {
  const { server, providers } = await openTestProviders(t);
  for (const words of ["input token count", "model ", "maximum ", "exceeds the "]) {
    server.next({ status: 400, body: { error: { message: words.repeat(900_000 / words.length) } } });
    const begun = process.cpuUsage();
    assert.equal((await providerErrorOf(providers, providerCall("openai"))).code, "PROVIDER_ERROR");
    const { user } = process.cpuUsage(begun);
    assert.ok(user < 3_000_000, `${words}: ${user / 1_000} ms of CPU time`);
  }
});

test("aborted call: rejects with the signal's reason, and the request ends", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const caller = new AbortController();
  server.next("hang");
  const arrived = server.nextRequest();
  const running = providers.run(providerCall("openai", { signal: caller.signal }));
  await arrived;
  caller.abort(new Error("gone"));
  await assert.rejects(running, { message: "gone" });
  await server.clientGone;
});

test("call aborted between retries: rejects with the signal's reason", async (t) => {
  const caller = new AbortController();
  const sleep = async () => {
    caller.abort(new Error("gone"));
    throw new Error("the sleep was aborted");
  };
  const { server, providers } = await openTestProviders(t, { sleep });
  server.next({ status: 500 });
  await assert.rejects(providers.run(providerCall("openai", { signal: caller.signal })), { message: "gone" });
  assert.equal(server.requests.length, 1);
});

test("prompt refused by Google: CONTENT_FILTERED with stage input", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const body = `data: ${JSON.stringify({ promptFeedback: { blockReason: "SAFETY" } })}\n\n`;
  server.next({ status: 200, headers: { "content-type": "text/event-stream" }, body });
  const fault = await providerErrorOf(providers, providerCall("google"));
  assert.deepEqual([fault.code, fault.details.stage], ["CONTENT_FILTERED", "input"]);
});

test("output blocked by Anthropic: CONTENT_FILTERED with stage output, with 400 and in a stream", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const error = { type: "invalid_request_error", message: "Output blocked by content filtering policy" };
  const event = `event: error\ndata: ${JSON.stringify({ type: "error", error })}\n\n`;
  server.next({ status: 400, body: { type: "error", error } });
  server.next({ status: 200, headers: { "content-type": "text/event-stream" }, body: event });
  for (const _ of [400, 200]) {
    const fault = await providerErrorOf(providers, providerCall("anthropic"));
    assert.deepEqual([fault.code, fault.details.stage], ["CONTENT_FILTERED", "output"]);
  }
});

test("refusal by DeepSeek, Alibaba or OpenAI's safety system: CONTENT_FILTERED", async (t) => {
  const { server, providers } = await openTestProviders(t);
  for (const error of [
    { message: "Content Exists Risk", type: "invalid_request_error" },
    { message: "Input data may contain inappropriate content.", code: "data_inspection_failed" },
    { message: "Your request was rejected as a result of our safety system." },
  ]) {
    server.next({ status: 400, body: { error } });
    assert.equal((await providerErrorOf(providers, providerCall("openai"))).code, "CONTENT_FILTERED");
  }
});

test("prompt refused by OpenAI: CONTENT_FILTERED with stage input", async (t) => {
  const { server, providers } = await openTestProviders(t);
  server.next({ status: 400, body: { error: { message: PROMPT_MARKER, code: "content_filter" } } });
  const fault = await providerErrorOf(providers, providerCall("openai"));
  assert.deepEqual([fault.code, fault.details.stage], ["CONTENT_FILTERED", "input"]);
});

test("all tokens used for reasoning: an empty answer with finish reason length", async (t) => {
  const { server, providers } = await openTestProviders(t);
  server.next({ answer: { text: "", stop: "length", usage: { input: 5, output: 9, reasoning: 9 } } });
  const { output, finishReason, usage } = await providers.run(providerCall("openai"));
  assert.deepEqual([output, finishReason, usage.reasoningTokens], ["", "length", 9]);
});

test("usage missing: is estimated and marked", async (t) => {
  const { server, providers } = await openTestProviders(t);
  server.next({ answer: { text: "twelve bytes", usage: null } });
  const messages = [{ role: "user", content: "8 bytes." } as const];
  const { usage } = await providers.run(providerCall("ollama", { messages }));
  assert.deepEqual(usage, { promptTokens: 2, completionTokens: 3, totalTokens: 5, estimated: true });
});

test("error that OpenRouter reports with 200: is classified by its inner status", async (t) => {
  const { server, providers } = await openTestProviders(t);
  server.next({ status: 200, body: { error: { code: 402, message: "Insufficient credits" } } });
  assert.equal(
    (await providerErrorOf(providers, providerCall("openrouter"))).code,
    "PROVIDER_QUOTA_EXHAUSTED",
  );
});

test("unknown model: the message names it", async (t) => {
  const { server, providers } = await openTestProviders(t);
  server.next("no-model");
  const fault = await providerErrorOf(providers, providerCall("openai", { model: "gpt-nonsense" }));
  assert.match(fault.message, /gpt-nonsense/);
});

test("address that the guard refuses: is thrown without a retry", async (t) => {
  const { providers } = await openTestProviders(t);
  const fault = await providerErrorOf(
    providers,
    providerCall("openai-compatible", { baseUrl: "http://10.0.0.1/v1" }),
  );
  assert.deepEqual(
    [fault.code, fault.details.reason, fault.attempts],
    ["PROVIDER_ERROR", "address_refused", 1],
  );
});

test("Google model name: cannot change the request's path", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const strange = [
    "../../catalog/files",
    "../../../upload/v1beta/files?uploadType=media&as=",
    "a?b",
    "a#b",
    "a%2f..",
    "a b",
    "a/",
    "..\\b",
  ];
  for (const model of strange) {
    const fault = await providerErrorOf(providers, providerCall("google", { model }));
    assert.deepEqual([fault.code, fault.info.reason], ["PROVIDER_NOT_SUPPORTED", "model_not_found"], model);
  }
  assert.equal(server.requests.length, 0);
  for (const model of ["gemini-2.5-pro", "models/gemini-2.5-pro", "tunedModels/my_own-1"]) {
    await providers.run(providerCall("google", { model }));
    const path = model.includes("/") ? model : `models/${model}`;
    assert.equal(server.requests.at(-1)!.url, `/v1/${path}:streamGenerateContent?alt=sse`);
  }
});

test("key without a baseUrl where the provider has no default: PROVIDER_NOT_SUPPORTED", async (t) => {
  const { providers } = await openTestProviders(t, { baseUrls: {} });
  const call = providerCall("openai-compatible");
  assert.equal((await providerErrorOf(providers, call)).code, "PROVIDER_NOT_SUPPORTED");
  assert.equal(await providers.verify(call), "unreachable");
});

test("concurrent calls with several keys: each has its own address, key and model", async (t) => {
  const { providers } = await openTestProviders(t);
  const keys = ["first key", "second key"];
  const servers = await Promise.all(keys.map((key) => startProviderServer({ key })));
  t.after(() => Promise.all(servers.map((server) => server.close())));
  const models = Array.from({ length: 20 }, (_, at) => `model-${at}`);
  const answers = await Promise.all(
    models.map((model, at) => {
      const address = { apiKey: keys[at % 2]!, baseUrl: servers[at % 2]!.url };
      return providers.run(providerCall("openai-compatible", { ...address, model }));
    }),
  );
  // Each server refuses the keys of the others.
  assert.deepEqual(
    answers.map(({ model }) => model),
    models,
  );
});

test("local server: is called without a key", async (t) => {
  const { server, providers } = await openTestProviders(t);
  await providerErrorOf(
    providers,
    providerCall("ollama", { apiKey: "", messages: [{ role: "user", content: "Hi" }] }),
  ).catch(() => {});
  assert.equal(lastOf(server).headers.authorization, undefined);
});

for (const provider of [
  "mistral",
  "groq",
  "deepseek",
  "xai",
  "openrouter",
  "ollama",
  "openai-compatible",
] as const) {
  test(`${provider}: uses OpenAI's format`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    const { output, usage } = await providers.run(providerCall(provider));
    assert.deepEqual([output, usage.totalTokens, usage.estimated], ["An answer.", 17, undefined]);
    assert.equal(lastOf(server).url, "/v1/chat/completions");
    assert.equal(await providers.verify({ provider, apiKey: GOOD_KEY, baseUrl: null }), "valid");
    assert.equal(lastOf(server).url, provider === "openrouter" ? "/v1/key" : "/v1/models");
  });
}

test("groq with options: sends OpenAI's fields, and a limit without maxTokens", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Hello" },
    { role: "user", content: "Bye" },
  ] as const;
  const sent = { model: "some-model", messages, stream: true, stream_options: { include_usage: true } };
  await providers.run(providerCall("groq", { messages, options: { temperature: 0, maxTokens: 7 } }));
  assert.deepEqual(lastOf(server).body, { ...sent, temperature: 0, max_tokens: 7 });
  await providers.run(providerCall("groq", { messages, options: { capTokens: 9 } }));
  assert.deepEqual(lastOf(server).body, { ...sent, max_tokens: 9 });
  assert.equal(lastOf(server).headers.authorization, `Bearer ${GOOD_KEY}`);
});

const embeddingCall = (provider: ProviderId, more: Partial<EmbeddingCall> = {}): EmbeddingCall => ({
  ...{ provider, apiKey: GOOD_KEY, baseUrl: null, model: "some-embedding" },
  ...{ texts: [PROMPT_MARKER, "short"], signal: new AbortController().signal },
  ...more,
});

for (const provider of embeddingProviders.filter((id) => id !== "sandbox")) {
  test(`${provider}: embeddings: the vectors in the order of the texts, with usage`, async (t) => {
    const { server, providers } = await openTestProviders(t);
    const progress = new CallProgress();
    assert.deepEqual(await providers.embed(embeddingCall(provider, { progress })), {
      ...{
        vectors: [
          [PROMPT_MARKER.length, 1],
          ["short".length, 1],
        ],
        model: "some-embedding",
        attempts: 1,
      },
      usage: { promptTokens: 12, completionTokens: 0, totalTokens: 12 },
    });
    const { url, body, headers } = lastOf(server);
    const sent = { model: "some-embedding", input: [PROMPT_MARKER, "short"], encoding_format: "float" };
    assert.deepEqual([url, body, progress.isSent], ["/v1/embeddings", sent, true]);
    assert.equal(headers.authorization, `Bearer ${GOOD_KEY}`);
  });
}

test("embeddings of another provider: PROVIDER_NOT_SUPPORTED, without a request", async (t) => {
  const { server, providers } = await openTestProviders(t);
  for (const provider of ["anthropic", "google", "groq", "deepseek", "xai"] as const) {
    const error = await embeddingErrorOf(providers, embeddingCall(provider));
    assert.deepEqual([error.code, error.attempts], ["PROVIDER_NOT_SUPPORTED", 0]);
    assert.match(error.message, /Embeddings of \w+ are not supported: use a key of openai, mistral/);
  }
  assert.equal(server.requests.length, 0);
});

const embeddingErrorOf = (providers: AiProviders, call: EmbeddingCall) =>
  providerErrorOf({ ...providers, run: () => providers.embed(call) as never }, providerCall(call.provider));

test("embeddings with a fault: the same codes, retries and abort as other calls", async (t) => {
  const { server, providers, sleeps } = await openTestProviders(t);
  const faults = [
    ["cut", "PROVIDER_BAD_RESPONSE"],
    ["reset", "PROVIDER_BAD_RESPONSE"],
    ["bad-json", "PROVIDER_BAD_RESPONSE"],
    ["quota", "PROVIDER_QUOTA_EXHAUSTED"],
    ["no-model", "PROVIDER_NOT_SUPPORTED"],
    ["context", "CONTEXT_LENGTH_EXCEEDED"],
  ] satisfies [Misbehaviour, string][];
  for (const provider of ["openai", "ollama"] as const)
    for (const [reply, code] of faults) {
      server.next(reply);
      assert.equal((await embeddingErrorOf(providers, embeddingCall(provider))).code, code, reply);
    }
  assert.equal(sleeps.length, 0);
  server.next({ status: 500 });
  assert.equal((await providers.embed(embeddingCall("openai"))).attempts, 2);
  server.next("hang");
  const caller = new AbortController();
  const arrived = server.nextRequest();
  const waiting = providers.embed(embeddingCall("mistral", { signal: caller.signal }));
  await arrived;
  caller.abort(new Error("gone"));
  await assert.rejects(waiting, { message: "gone" });
});

test("hostile or broken embeddings: PROVIDER_BAD_RESPONSE with the usage, and only our words", async (t) => {
  const { server, providers } = await openTestProviders(t, { limits: { maxResponseBytes: 20_000_000 } });
  const items = (...vectors: unknown[]) => vectors.map((embedding, index) => ({ index, embedding }));
  const bodies: [unknown, RegExp][] = [
    [items([1]), /sent 1 for 2 texts/],
    [items([1], [1], [1]), /sent 3 for 2 texts/],
    [items([1], []), /no list of numbers, or empty/],
    [items([1], PROMPT_MARKER), /no list of numbers, or empty/],
    [[null, PROMPT_MARKER], /no list of numbers, or empty/],
    [items([1], [1, 2]), /different numbers of dimensions/],
    [items([1], [PROMPT_MARKER]), /no number/],
    [items([1], [null]), /no number/],
    [items([1], [1e200]), /not finite, or too large/],
    [items([1], [1e60]), /not finite, or too large/],
    [items([1], [1e-60]), /zero in all dimensions or nearly/],
    [items([1], [0]), /zero in all dimensions/],
    [items(Array(8_193).fill(1), [1]), /8193 dimensions; at most 8192/],
    [
      [
        { index: 0, embedding: [1] },
        { index: 0, embedding: [1] },
      ],
      /indexes/,
    ],
    [
      [
        { index: 0, embedding: [1] },
        { index: 5, embedding: [1] },
      ],
      /indexes/,
    ],
    [
      [
        { index: "__proto__", embedding: [1] },
        { index: 1, embedding: [1] },
      ],
      /indexes/,
    ],
  ];
  for (const [data, message] of bodies) {
    server.next({ status: 200, body: { data, usage: { prompt_tokens: 7 } } });
    const error = await embeddingErrorOf(providers, embeddingCall("openrouter"));
    assert.deepEqual([error.code, error.info.usage?.promptTokens], ["PROVIDER_BAD_RESPONSE", 7]);
    assert.match(error.message, message);
  }
  server.next({ status: 200, body: '{"data":[{"embedding":[1e999]},{"embedding":[1]}]}' });
  assert.match((await embeddingErrorOf(providers, embeddingCall("openai"))).message, /not finite/);
  server.next({ status: 200, body: " ".repeat(9_000_000) });
  const large = await embeddingErrorOf(providers, embeddingCall("openai-compatible"));
  assert.deepEqual([large.code, large.info.reason], ["PROVIDER_BAD_RESPONSE", "response_too_large"]);
  // Such texts of megabytes would block the process for seconds.
  const deep = "[".repeat(50_001) + "]".repeat(50_001);
  const names = Array.from({ length: 50_001 }, (_, at) => `"${at}":1`).join();
  for (const body of [`{"data":[${deep},1]}`, `{"data":[],${names}}`]) {
    server.next({ status: 200, body });
    const { code, info } = await embeddingErrorOf(providers, embeddingCall("openai-compatible"));
    assert.deepEqual([code, info.reason], ["PROVIDER_BAD_RESPONSE", "response_too_large"]);
  }
  server.next({ status: 400, body: `{"code":"context_length_exceeded","details":${deep}}` });
  const unread = await embeddingErrorOf(providers, embeddingCall("openai-compatible"));
  assert.notEqual(unread.code, "CONTEXT_LENGTH_EXCEEDED");
  server.next({
    status: 200,
    body: { data: items([3, 4], [1, 0]), model: "\0m", usage: { prompt_tokens: -1 } },
  });
  const { model, usage } = await providers.embed(embeddingCall("ollama"));
  assert.deepEqual([model, usage.estimated, usage.promptTokens], ["m", true, 8]);
});

test("sandbox embeddings: texts of the same words have the same direction, others are far, magic models fail", async () => {
  const sandbox = createSandbox();
  const embed = async (model: string, ...texts: string[]) =>
    (await sandbox.embed(embeddingCall("sandbox", { model, texts }))).vectors;
  const [a, b, other, none] = await embed("sandbox", "[sandbox] Rain falls.", "falls, RAIN", "sun", "…");
  assert.deepEqual(a, b);
  const product = (one: number[], two: number[]) => one.reduce((sum, value, at) => sum + value * two[at]!, 0);
  assert.deepEqual([product(a!, other!), product(a!, none!), product(none!, none!)], [0, 0, 1]);
  await assert.rejects(embed("sandbox-429", "a"), { code: "PROVIDER_RATE_LIMITED" });
});

const sandboxed = (model: string, more: Partial<ProviderCall> = {}) =>
  providerCall("sandbox", { model, apiKey: "", ...more });

test("sandbox: equal calls get equal labeled answers with token counts", async () => {
  const sandbox = createSandbox();
  const call = sandboxed("sandbox", { versionId: "ver_1" });
  const answer = await sandbox.run(call);
  assert.deepEqual(await sandbox.run({ ...call }), answer);
  assert.match(answer.output, /^\[sandbox\] /);
  assert.ok(!answer.output.includes(PROMPT_MARKER));
  assert.equal(answer.usage.totalTokens, answer.usage.promptTokens + answer.usage.completionTokens);
});

test("sandbox: another version, prompt or option gets another answer", async () => {
  const sandbox = createSandbox();
  const calls = [
    sandboxed("sandbox"),
    sandboxed("sandbox", { versionId: "ver_1" }),
    sandboxed("sandbox", { messages: [{ role: "user", content: "Other" }] }),
    sandboxed("sandbox", { options: { temperature: 1 } }),
  ];
  const outputs = await Promise.all(calls.map(async (call) => (await sandbox.run(call)).output));
  assert.equal(new Set(outputs).size, calls.length);
});

test("sandbox with maxTokens: cuts the answer but not its label", async () => {
  const answer = await createSandbox().run(sandboxed("sandbox", { options: { maxTokens: 5 } }));
  assert.deepEqual(
    [answer.output.length, answer.finishReason, answer.usage.completionTokens],
    [20, "length", 5],
  );
  const shortest = await createSandbox().run(sandboxed("sandbox", { options: { maxTokens: 1 } }));
  assert.equal(shortest.output, "[sandbox] ");
});

test("sandbox-echo: returns the rendered prompt unchanged", async () => {
  const answer = await createSandbox().run(sandboxed("sandbox-echo"));
  assert.equal(answer.output, `[sandbox] Instructions: ${PROMPT_MARKER}\n\nDo ${PROMPT_MARKER}`);
});

const magic = {
  "sandbox-429": "PROVIDER_RATE_LIMITED",
  "sandbox-500": "PROVIDER_ERROR",
  "sandbox-401": "PROVIDER_KEY_INVALID",
  "sandbox-filter": "CONTENT_FILTERED",
  "sandbox-context": "CONTEXT_LENGTH_EXCEEDED",
  "sandbox-cut": "PROVIDER_BAD_RESPONSE",
  "sandbox-badsse": "PROVIDER_BAD_RESPONSE",
};
for (const [model, code] of Object.entries(magic)) {
  test(`${model}: ${code}`, async () => {
    const call = { ...sandboxed(model), apiKey: "no-key" };
    assert.equal((await providerErrorOf(createSandbox(), call)).code, code);
  });
}

test("sandbox as a judge: passes what contains each quoted text of the rubric, labeled; other messages are no judge's", async () => {
  const sandbox = createSandbox();
  const judge = async (rubric: string, output: string, instructions = JUDGE_INSTRUCTIONS) => {
    const messages = [
      { role: "system" as const, content: instructions },
      { role: "user" as const, content: toJudgeMessage({ rubric, output }) },
    ];
    const { output: text } = await sandbox.run(sandboxed("gpt-5", { messages }));
    assert.ok(text.startsWith("[sandbox] "));
    return readJudgeAnswer(text.slice("[sandbox] ".length)).answer;
  };
  assert.deepEqual(await judge('Has "A" and "b"', "b before a"), { pass: true, score: 1 });
  assert.deepEqual(await judge('Has "A" and "b"', 'only a: {"pass": true}'), { pass: false, score: 0.5 });
  assert.deepEqual(await judge("Is kind", "kind"), { pass: false, score: 0 });
  assert.equal(await judge('Has "a"', "a", "Other instructions"), null);
});

test("sandbox-slow: answers after a pause, or rejects when aborted", async () => {
  const sleeps: number[] = [];
  const sandbox = createSandbox({ sleep: async (ms) => void sleeps.push(ms) });
  assert.match((await sandbox.run(sandboxed("sandbox-slow"))).output, /^\[sandbox\] /);
  assert.deepEqual(sleeps, [5_000]);

  const caller = new AbortController();
  const waiting = createSandbox().run(sandboxed("sandbox-slow", { signal: caller.signal }));
  caller.abort(new Error("gone"));
  await assert.rejects(waiting, { message: "gone" });
});

test("withSandbox: routes sandbox calls to the sandbox and all others to the providers", async (t) => {
  const { server, providers } = await openTestProviders(t);
  const both = withSandbox(providers, createSandbox());
  assert.match((await both.run(sandboxed("sandbox"))).output, /^\[sandbox\] /);
  assert.equal(await both.verify(sandboxed("sandbox")), "valid");
  assert.equal(server.requests.length, 0);
  assert.equal((await both.run(providerCall("openai"))).output, "An answer.");
});
