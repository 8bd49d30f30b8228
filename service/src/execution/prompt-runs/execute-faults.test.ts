import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import type { ErrorCode } from "@stoa/contract";
import { dumpDatabase } from "../../../test/dump.ts";
import { buyProduct, createDraft, createProduct } from "../../../test/factories.ts";
import { oneOf, sampleOf } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import {
  type Answer,
  type Misbehaviour,
  type ProviderServer,
  type Raw,
  refusedUrl,
  startProviderServer,
} from "../../../test/provider-server.ts";
import {
  createProviderKey,
  newestRun,
  providersAt,
  run,
  runToCompletion,
  startBlockedProvider,
} from "../../../test/runs.ts";

const PROMPT_MARKER = "the-authors-secret-prompt";
const VALUE_MARKER = "the-buyers-secret-value";
const DEFAULT_MARKER = "the-secret-default";
const KEY_MARKER = "sk-the-secret-provider-key";
const ANSWER_MARKER = "the-secret-answer";

interface Shop {
  market: Market;
  owner: Client;
  productId: string;
}

let provider: ProviderServer;
let market: Market;
let owner: Client;
let productId: string;
/** The shop of these three. Each of the others shortens one deadline, so that a busy machine meets no other. */
let patient: Shop;
let noFirstByte: Shop;
let noSilence: Shop;
before(async () => {
  provider = await startProviderServer({ key: KEY_MARKER });
  patient = await openShop({});
  noFirstByte = await openShop({ firstByteMs: 600 });
  noSilence = await openShop({ idleMs: 600 });
  ({ market, owner, productId } = patient);
});
after(async () => {
  for (const shop of [patient, noFirstByte, noSilence]) await shop.market.close();
  await provider.close();
});

async function openShop(deadlines: { firstByteMs?: number; idleMs?: number }): Promise<Shop> {
  const market = await openMarket({ providers: providersAt(provider), deadlines });
  const owner = await market.createUser();
  const productId = await createDraft(owner, {
    content: `${PROMPT_MARKER} {{topic}} {{more=${DEFAULT_MARKER}}}`,
    compatibility: ["openai", "anthropic", "google"],
  });
  return { market, owner, productId };
}

const variables = { topic: VALUE_MARKER };
const formats = ["openai", "anthropic", "google", "openai-compatible"];
const keyOf = (format: string, more: object = {}, by = owner) =>
  createProviderKey(by, {
    provider: format,
    key: KEY_MARKER,
    ...(format === "openai-compatible" && { baseUrl: provider.url }),
    ...more,
  });
const fails = async (apiKeyId: string, shop = patient) =>
  run(shop.owner, {
    ...{ productId: shop.productId, apiKeyId, variables },
    options: { model: "some-model" },
  });
const statusOf = async (apiKeyId: string, by = owner) => {
  const { body } = await by.get("/v1/ai/keys?limit=100");
  return body.data.find(({ id }: { id: string }) => id === apiKeyId).status;
};

/** Texts of author, buyer and provider, which no error and no log may contain. */
const markers = [PROMPT_MARKER, VALUE_MARKER, DEFAULT_MARKER, KEY_MARKER, ANSWER_MARKER];
function mustTellNothing(text: string, what: string) {
  for (const marker of markers) assert.ok(!text.includes(marker), `${what} contains ${marker}`);
}

/** Asserts that the response and the history agree about the error. */
async function assertFault(
  reply: Reply,
  status: number,
  code: ErrorCode,
  details: object = {},
  by = owner,
): Promise<void> {
  const errorDetails = assertError(reply, status, code);
  mustTellNothing(reply.text, "the answer");
  const { executionId, provider: _, attempts, ...facts } = errorDetails;
  const row = await newestRun(by);
  assert.equal(row.id, executionId);
  assert.deepEqual([row.status, row.error.code], ["failed", code]);
  assert.equal(row.error.message, reply.body.error.message);
  assert.equal((await by.get(`/v1/ai/executions/${row.id}`)).body.data.attempts, attempts);
  assert.deepEqual({ attempts, ...facts }, { source: "provider", attempts: 1, ...details });
}

interface Fault {
  when: string;
  replies: (Misbehaviour | Raw | { answer: Answer })[];
  status: number;
  code: ErrorCode;
  details?: { phase?: string; status?: number } & Record<string, unknown>;
  retryAfter?: string;
}

/** Echoes the whole request, as some providers do. */
const quoting = {
  error: { message: `You sent ${PROMPT_MARKER} ${VALUE_MARKER} by ${KEY_MARKER}: ${ANSWER_MARKER}` },
};

const faults: Fault[] = [
  {
    when: "403",
    replies: [{ status: 403, body: quoting }],
    status: 424,
    code: "PROVIDER_PERMISSION_DENIED",
    details: { status: 403 },
  },
  { when: "account without credit", replies: ["quota"], status: 424, code: "PROVIDER_QUOTA_EXHAUSTED" },
  {
    when: "429 with a long Retry-After",
    replies: [{ status: 429, headers: { "retry-after": "30" }, body: quoting }],
    status: 429,
    code: "PROVIDER_RATE_LIMITED",
    details: { status: 429, retryAfterSeconds: 30 },
    retryAfter: "30",
  },
  {
    when: "429 without Retry-After",
    replies: [{ status: 429, body: quoting }],
    status: 429,
    code: "PROVIDER_RATE_LIMITED",
    details: { status: 429, retryAfterSeconds: 10 },
    retryAfter: "10",
  },
  {
    when: "repeated 429",
    replies: [1, 1, 1].map((seconds) => ({ status: 429, headers: { "retry-after": `${seconds}` } })),
    status: 429,
    code: "PROVIDER_RATE_LIMITED",
    details: { status: 429, retryAfterSeconds: 1, attempts: 3 },
    retryAfter: "1",
  },
  {
    when: "repeated 5xx",
    replies: [500, 502, 503].map((status) => ({ status, body: quoting })),
    status: 502,
    code: "PROVIDER_ERROR",
    details: { status: 503, attempts: 3 },
  },
  {
    when: "unknown refusal",
    replies: [{ status: 418, body: quoting }],
    status: 502,
    code: "PROVIDER_ERROR",
    details: { status: 418, reason: "request_refused" },
  },
  {
    when: "broken answer",
    replies: ["cut"],
    status: 502,
    code: "PROVIDER_BAD_RESPONSE",
  },
  { when: "lost connection", replies: ["reset"], status: 502, code: "PROVIDER_BAD_RESPONSE" },
  { when: "broken JSON", replies: ["bad-json"], status: 502, code: "PROVIDER_BAD_RESPONSE" },
  {
    when: "answer without a finish reason",
    replies: [{ answer: { text: ANSWER_MARKER, stop: null } }],
    status: 502,
    code: "PROVIDER_BAD_RESPONSE",
  },
  {
    when: "no response",
    replies: ["hang"],
    status: 504,
    code: "PROVIDER_TIMEOUT",
    details: { phase: "first_byte" },
  },
  {
    when: "silence within the answer",
    replies: ["stall"],
    status: 504,
    code: "PROVIDER_TIMEOUT",
    details: { phase: "idle" },
  },
  {
    when: "filtered answer",
    replies: ["filter"],
    status: 422,
    code: "CONTENT_FILTERED",
    details: { stage: "output" },
  },
  { when: "too long prompt", replies: ["context"], status: 422, code: "CONTEXT_LENGTH_EXCEEDED" },
  {
    when: "unknown model",
    replies: ["no-model"],
    status: 422,
    code: "PROVIDER_NOT_SUPPORTED",
    details: { status: 404, reason: "model_not_found" },
  },
];

suite("provider error of POST /v1/ai/execute", () => {
  for (const [at, { when, replies, status, code, details, retryAfter = null }] of faults.entries()) {
    test(`${when}: ${status} ${code}`, async () => {
      // A deadline takes its whole time.
      const tried = code === "PROVIDER_TIMEOUT" ? oneOf(formats, at % formats.length) : sampleOf(formats, at);
      const shop = { first_byte: noFirstByte, idle: noSilence }[details?.phase ?? ""] ?? patient;
      for (const format of tried) {
        const apiKeyId = await keyOf(format, {}, shop.owner);
        for (const reply of replies) provider.next(reply);
        const reply = await fails(apiKeyId, shop);
        const errorDetails = assertError(reply, status, code);
        // The status for these differs between providers.
        const differs = !details || !("status" in details);
        const expected = {
          ...(differs && errorDetails.status !== undefined && { status: errorDetails.status }),
          ...details,
        };
        await assertFault(reply, status, code, expected, shop.owner);
        assert.equal(reply.headers.get("retry-after"), retryAfter);
        assert.equal(errorDetails.provider, format);
        assert.equal(await statusOf(apiKeyId, shop.owner), "valid", "says nothing about the key");
      }
    });
  }

  test("key refused: 424 PROVIDER_KEY_INVALID, and the key is invalid until a call succeeds", async () => {
    for (const format of formats) {
      const apiKeyId = await keyOf(format);
      provider.next("bad-key");
      const reply = await fails(apiKeyId);
      const { status } = assertError(reply, 424, "PROVIDER_KEY_INVALID");
      await assertFault(reply, 424, "PROVIDER_KEY_INVALID", { status });
      assert.equal(await statusOf(apiKeyId), "invalid");
      await runToCompletion(owner, { productId, apiKeyId, variables, options: { model: "some-model" } });
      assert.equal(await statusOf(apiKeyId), "valid");
    }
  });

  test("key replaced during the call: a 401 does not invalidate the new key", async (t) => {
    const blocked = await startBlockedProvider();
    t.after(() => blocked.close());
    const apiKeyId = await keyOf("openai-compatible", { baseUrl: blocked.url });
    blocked.holdNextListing();
    const [failing, verifying] = [fails(apiKeyId), owner.post(`/v1/ai/keys/${apiKeyId}/verify`)];
    await blocked.arrivals(2);
    await owner.patch(`/v1/ai/keys/${apiKeyId}`, { key: `${KEY_MARKER}-new` });
    blocked.answer(401);
    assertError(await failing, 424, "PROVIDER_KEY_INVALID");
    await verifying;
    assert.equal(await statusOf(apiKeyId), "valid");
  });

  test("server unreachable: 502 PROVIDER_ERROR after three attempts", async () => {
    const reply = await fails(await keyOf("openai-compatible", { baseUrl: await refusedUrl() }));
    await assertFault(reply, 502, "PROVIDER_ERROR", { reason: "unreachable", attempts: 3 });
  });

  test("error before a successful retry: the run completes", async () => {
    for (const reply of [{ status: 500 }, { status: 429, headers: { "retry-after": "1" } }]) {
      provider.next(reply);
      const { metadata } = await runToCompletion(owner, {
        productId,
        apiKeyId: await keyOf("openai"),
        variables,
      });
      assert.equal(metadata.attempts, 2);
    }
  });

  test("reported usage: counts with its cost", async () => {
    const apiKeyId = await keyOf("openai");
    provider.next({ answer: { text: "", stop: "filter", usage: { input: 1_000, output: 100 } } });
    const reply = await run(owner, { productId, apiKeyId, variables, options: { model: "gpt-4o" } });
    await assertFault(reply, 422, "CONTENT_FILTERED", { stage: "output" });
    const { usage } = await newestRun(owner);
    assert.deepEqual([usage.totalTokens, usage.estimatedCost, usage.costKnown], [1_100, 0.0035, true]);
    provider.next({ status: 418 });
    await fails(apiKeyId);
    assert.equal((await newestRun(owner)).usage, null, "no reported usage, no usage");
  });

  test("internal error: 500 in response and history, and only the log has the cause", async () => {
    const random = () => {
      throw new Error("an error of ours");
    };
    const broken = await openMarket({ providers: { ...providersAt(provider), random } });
    try {
      const somebody = await broken.createUser();
      const apiKeyId = await createProviderKey(somebody, { key: KEY_MARKER });
      provider.next({ status: 500 });
      const reply = await run(somebody, { productId: await createDraft(somebody), apiKeyId });
      assertError(reply, 500, "INTERNAL_ERROR");
      const { status, error } = await newestRun(somebody);
      assert.deepEqual([status, error.code], ["failed", "INTERNAL_ERROR"]);
      for (const text of [reply.text, error.message]) assert.ok(!text.includes("an error of ours"), text);
      assert.ok(broken.logs.some((line) => line.includes("an error of ours")));
    } finally {
      await broken.close();
    }
  });

  test("repeated errors: 503 PROVIDER_UNAVAILABLE without a call, for a while and only for this key", async () => {
    const clock = { ms: 0 };
    const spared = await openMarket({
      providers: providersAt(provider),
      breaker: { now: () => clock.ms, random: () => 0 },
    });
    try {
      const somebody = await spared.createUser();
      const request = {
        productId: await createDraft(somebody),
        apiKeyId: await createProviderKey(somebody, { key: KEY_MARKER }),
      };
      const before = provider.requests.length;
      for (let at = 0; at < 15; at++) provider.next({ status: 500 });
      for (let at = 0; at < 5; at++) assertError(await run(somebody, request), 502, "PROVIDER_ERROR");
      assert.equal(provider.requests.length, before + 15, "repeats within a run count once");
      clock.ms += 10_000;
      for (const stream of [false, true]) {
        const reply = await somebody.post("/v1/ai/execute", {
          ...request,
          variables: { topic: "rain" },
          stream,
        });
        const { attempts } = assertError(reply, 503, "PROVIDER_UNAVAILABLE");
        assert.deepEqual([attempts, reply.headers.get("retry-after")], [0, "20"]);
        mustTellNothing(reply.text, "the answer");
      }
      assert.equal(provider.requests.length, before + 15);
      const { status, error, usage } = await newestRun(somebody);
      assert.deepEqual([status, error.code, usage], ["failed", "PROVIDER_UNAVAILABLE", null]);
      const bought = await createProduct(await spared.createUser());
      await buyProduct(somebody, bought);
      const usedAt = async () =>
        (await spared.query("select used_at from entitlements where buyer_id = $1", [somebody.userId]))
          .rows[0].used_at;
      assertError(await run(somebody, { ...request, productId: bought }), 503, "PROVIDER_UNAVAILABLE");
      assert.equal(await usedAt(), null, "nothing was sent, so the product is refundable");
      const other = await createProviderKey(somebody, { provider: "anthropic", key: KEY_MARKER });
      await runToCompletion(somebody, { ...request, apiKeyId: other });
      clock.ms += 20_000;
      await runToCompletion(somebody, request);
      await runToCompletion(somebody, { ...request, productId: bought });
      assert.notEqual(await usedAt(), null);
    } finally {
      await spared.close();
    }
  });

  test("answers slower than the total deadline: 504 in the phase total", async () => {
    const hasty = await openMarket({
      providers: providersAt(provider),
      deadlines: { totalMs: 200 },
    });
    try {
      const somebody = await hasty.createUser();
      const request = {
        productId: await createDraft(somebody),
        apiKeyId: await createProviderKey(somebody, { key: KEY_MARKER }),
      };
      provider.next("hang");
      const key = { "idempotency-key": "slow" };
      const details = assertError(await run(somebody, request, key), 504, "PROVIDER_TIMEOUT");
      assert.equal(details.phase, "total");
      const requestCount = provider.requests.length;
      assertError(await run(somebody, request, key), 504, "PROVIDER_TIMEOUT");
      assert.equal(
        provider.requests.length,
        requestCount,
        "a repeat calls no provider, which may bill the first call",
      );
    } finally {
      await hasty.close();
    }
  });
});

suite("prompt, variables, answer and key", () => {
  test("after runs: are in no log and, in clear text, not in the database", async () => {
    provider.next({ answer: { text: ANSWER_MARKER } });
    const { executionId, output } = await runToCompletion(owner, {
      productId,
      apiKeyId: await keyOf("openai"),
      variables,
    });
    assert.equal(output, ANSWER_MARKER);
    const detail = await owner.get(`/v1/ai/executions/${executionId}`);
    assert.deepEqual(detail.body.data.variables, variables, "the variables are stored unchanged");
    const headers = { "idempotency-key": "kept" };
    const request = { productId, variables, options: { model: "sandbox-echo" } };
    assert.equal((await run(owner, request, headers)).status, 200);

    mustTellNothing(market.logs.join("\n"), "a log line");
    const elsewhere = (await dumpDatabase(market)).split("\n").filter((row) => !holdsProducts(row));
    assert.ok(elsewhere.some((row) => row.startsWith("executions ")));
    assert.ok(elsewhere.some((row) => row.startsWith("provider_keys ")));
    mustTellNothing(elsewhere.join("\n"), "a row");
  });

  /** The author's own text stays in the product. */
  const holdsProducts = (row: string) => /^product_versions /.test(row) && !row.includes(VALUE_MARKER);
});

suite("sandbox", () => {
  const magic: [model: string, status: number, code: ErrorCode, details: object][] = [
    ["sandbox-429", 429, "PROVIDER_RATE_LIMITED", { status: 429, retryAfterSeconds: 30 }],
    ["sandbox-500", 502, "PROVIDER_ERROR", { status: 500 }],
    ["sandbox-401", 424, "PROVIDER_KEY_INVALID", { status: 401 }],
    ["sandbox-filter", 422, "CONTENT_FILTERED", { status: 400, stage: "input" }],
    ["sandbox-context", 422, "CONTEXT_LENGTH_EXCEEDED", { status: 400 }],
    ["sandbox-cut", 502, "PROVIDER_BAD_RESPONSE", { status: 200 }],
    ["sandbox-badsse", 502, "PROVIDER_BAD_RESPONSE", { status: 200 }],
  ];
  for (const [model, status, code, details] of magic) {
    test(`${model} fails like a provider: ${status} ${code}`, async () => {
      const reply = await run(owner, { productId, variables, options: { model } });
      await assertFault(reply, status, code, details);
      assert.equal(reply.body.error.details.provider, "sandbox");
      assert.equal(reply.headers.get("retry-after"), model === "sandbox-429" ? "30" : null);
    });
  }

  const answerOf = async (request: object = {}) => {
    const { output, usage, metadata } = await runToCompletion(owner, { productId, variables, ...request });
    return { output, usage, model: metadata.model, finishReason: metadata.finishReason };
  };

  for (const model of ["gpt-4", "constructor", "sandbox-unknown"]) {
    test(`options.model ${model}: answers and names that model`, async () => {
      const request = { productId, variables, options: { model } };
      const { output, metadata, usage } = await runToCompletion(owner, request);
      assert.ok(output.startsWith(`[sandbox] A practice answer that pretends to be ${model}; no model was`));
      assert.deepEqual([metadata.provider, metadata.model, usage.estimatedCost], ["sandbox", model, 0]);
      assert.equal((await answerOf({ options: { model } })).output, output);
    });
  }

  test("equal runs: get equal answers; other runs get other ones", async () => {
    const first = await answerOf();
    assert.ok(first.output.startsWith("[sandbox] "));
    assert.ok(first.usage.promptTokens > 0 && first.usage.completionTokens > 0);
    assert.deepEqual(await answerOf(), first);
    const others = await Promise.all([
      answerOf({ variables: { topic: "sun" } }),
      answerOf({ options: { temperature: 0.5 } }),
      answerOf({ options: { maxTokens: 1_000 } }),
    ]);
    const outputs = new Set([first, ...others].map(({ output }) => output));
    assert.equal(outputs.size, 4);
  });

  test("version: the answer is equal in every installation and differs between versions", async () => {
    await owner.patch(`/v1/products/${productId}`, { changelog: "note" });
    const before = await answerOf();
    await owner.post(`/v1/products/${productId}/publish`);
    const publication = await owner.patch(`/v1/products/${productId}`, {
      content: `${PROMPT_MARKER}! {{topic}} {{more=${DEFAULT_MARKER}}}`,
    });
    assert.equal(publication.body.data.version, "1.1.0");
    assert.notEqual((await answerOf()).output, before.output);
    assert.equal((await answerOf({ options: { version: "1.0.0" } })).output, before.output);
  });

  test("cost: 0, and costKnown is true", async () => {
    const { usage } = await answerOf();
    assert.deepEqual([usage.estimatedCost, usage.costKnown], [0, true]);
  });
});
