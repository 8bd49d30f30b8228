import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, suite, type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { createDraft } from "../../../test/factories.ts";
import { isFullSize, runs } from "../../../test/full-size.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, newestRun, providersAt, run, startBlockedProvider } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { failAbandonedRuns } from "../executions/executions.ts";
import { renewLeases } from "../executions/leases.ts";

/** Longer than every step of these tests, shorter than the timeout of a test. */
const _PATIENCE_MS = 60_000;

/** The addresses of the providers of `blockedShop`, which each test changes. */
const blockedUrls: { openai?: string } = {};

let provider: ProviderServer;
let blockedShop: Market;
let market: Market;
let owner: Client;
let productId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  owner = await market.createUser();
  productId = await createDraft(owner, { models: { openai: "gpt-4o" } });
  blockedShop = await openMarket({ providers: { baseUrls: blockedUrls } });
});
after(async () => {
  await market.close();
  await blockedShop.close();
  await provider.close();
});

/** A new user of a shop whose provider answers on request. */
async function createBlockedUser(t: TestContext, keyFields: Record<string, unknown>) {
  const blocked = await startBlockedProvider();
  t.after(() => blocked.close());
  blockedUrls.openai = blocked.url;
  const shop = blockedShop;
  const somebody = await shop.createUser();
  const runRequest = {
    productId: await createDraft(somebody, { models: { openai: "gpt-4o" } }),
    apiKeyId: await createProviderKey(somebody, keyFields),
  };
  return { blocked, shop, somebody, runRequest };
}

suite("client that disconnects", () => {
  const hangUp = async (more: { topic?: string; key?: Record<string, unknown> } = {}) => {
    const { topic = "rain", key = {} } = more;
    const runRequest = { productId, variables: { topic } };
    const client = new AbortController();
    const apiKeyId = await createProviderKey(owner, key);
    provider.next("hang");
    const arrival = provider.nextRequest();
    const call = owner.request("POST", "/v1/ai/execute", {
      json: { ...runRequest, apiKeyId },
      signal: client.signal,
    });
    await arrival;
    const hungUpAt = performance.now();
    client.abort();
    await assert.rejects(call);
    return { hungUpAt, apiKeyId };
  };
  const untilEnded = () =>
    becomes(
      () => newestRun(owner),
      ({ status }) => status !== "running",
    );

  test("running call: is aborted within a second, and the run is canceled", async () => {
    const { hungUpAt } = await hangUp();
    await provider.clientGone;
    assert.ok(performance.now() - hungUpAt < 1_000);
    const { id, error, usage } = await untilEnded();
    const { body } = await owner.get(`/v1/ai/executions/${id}`);
    const { status, variables, output, completedAt } = body.data;
    assert.deepEqual({ status, variables, output }, { status: "canceled", variables: null, output: null });
    assert.equal(error.code, "client_gone");
    assert.deepEqual([usage.promptTokens > 0, usage.costKnown, usage.estimated], [true, true, true]);
    assert.ok(usage.estimatedCost > 0, "the provider received the prompt and may bill it");
    assert.notEqual(completedAt, null);
    assert.ok(
      !market.logs.some((line) => JSON.parse(line).level >= 50),
      "neither side failed, so no error is logged",
    );
  });

  test("running call: its prompt counts for the budget of the key", async () => {
    // 20,000 bytes reserve at most 0.05 USD, and count as 5,000 tokens: 0.0125 USD.
    const long = { topic: "rain".repeat(5_000), key: { monthlyBudget: 0.06 } };
    const { apiKeyId } = await hangUp(long);
    const { usage } = await untilEnded();
    assert.ok(usage.promptTokens >= 5_000 && usage.estimatedCost >= 0.0125, JSON.stringify(usage));
    const runRequest = { productId, apiKeyId, variables: { topic: long.topic } };
    assertError(await run(owner, runRequest), 429, "KEY_BUDGET_EXCEEDED");
  });

  test("request with an Idempotency-Key: completes, and the repeated request gets its answer", async (t) => {
    const { blocked, somebody, runRequest } = await createBlockedUser(t, {});
    const headers = { "idempotency-key": "patient" };
    const client = new AbortController();
    const json = { ...runRequest, variables: { topic: "rain" } };
    const call = somebody.request("POST", "/v1/ai/execute", { json, headers, signal: client.signal });
    await blocked.arrivals(1);
    client.abort();
    await assert.rejects(call);
    const repeat = () => somebody.post("/v1/ai/execute", json, headers);
    assertError(await repeat(), 409, "IDEMPOTENCY_IN_PROGRESS");
    blocked.answer();
    const again = await becomes(repeat, ({ status }) => status !== 409);
    assert.equal(again.status, 200, again.text);
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    assert.equal(again.body.data.output, "At last.");
    assert.equal(blocked.arrived(), 1);
    const { id, status } = await newestRun(somebody);
    assert.deepEqual([id, status], [again.body.data.executionId, "completed"]);
  });
});

test("shutdown: does not wait for a connection on which no request was sent", {
  timeout: 60_000,
}, async () => {
  const shop = await openMarket({ graceMs: 3_600_000 });
  const socket = connect(Number(new URL(shop.origin).port), "127.0.0.1");
  await once(socket, "connect");
  await shop.close();
  socket.destroy();
});

test("run longer than the grace period of a shutdown: 503, and recorded as failed", async (t) => {
  const blocked = await startBlockedProvider();
  const shop = await openMarket({ providers: { baseUrls: { openai: blocked.url } }, graceMs: 100 });
  const { rows } = await shop.query("select current_database() as name");
  const address = new URL(process.env["STOA_TEST_DATABASE"]!);
  address.pathname = `/${rows[0].name}`;
  const database = new pg.Client({ connectionString: address.href });
  await database.connect();
  t.after(async () => {
    await database.end();
    await blocked.close();
  });
  const somebody = await shop.createUser();
  const apiKeyId = await createProviderKey(somebody);
  const running = run(somebody, { productId: await createDraft(somebody), apiKeyId });
  await blocked.arrivals(1);
  const closing = shop.service.close();
  const reply = await running;
  const { executionId } = assertError(reply, 503, "SERVICE_UNAVAILABLE");
  await closing;
  const history = await database.query("select status, error_code as code, sealed_texts from executions");
  assert.deepEqual(history.rows, [{ status: "failed", code: "shutdown", sealed_texts: null }]);
  assert.match(executionId, /^exec_/);
});

suite("slow provider", () => {
  test("options.timeoutSeconds: limits the wait, and the prompt counts after a timeout", async (t) => {
    const shop = await openMarket({
      providers: providersAt(provider),
      deadlines: { firstByteMs: 100, idleMs: 100 },
    });
    t.after(() => shop.close());
    const somebody = await shop.createUser();
    const runRequest = {
      productId: await createDraft(somebody, { models: { openai: "gpt-4o" } }),
      apiKeyId: await createProviderKey(somebody),
    };
    const gate = () => wait(150);
    provider.next({ stream: { pieces: ["At last."], gate } });
    const reply = await run(somebody, { ...runRequest, options: { timeoutSeconds: 600 } });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.data.output, "At last.");
    provider.next("hang");
    const { phase } = assertError(await run(somebody, runRequest), 504, "PROVIDER_TIMEOUT");
    const { usage } = await newestRun(somebody);
    assert.equal(phase, "first_byte");
    assert.deepEqual([usage.promptTokens > 0, usage.estimatedCost > 0, usage.estimated], [true, true, true]);
    for (const timeoutSeconds of [0, 1_801, 1.5])
      assertError(
        await run(somebody, { ...runRequest, options: { timeoutSeconds } }),
        400,
        "INVALID_REQUEST",
        "options.timeoutSeconds",
      );
  });

  test("long call: its leases are renewed while the process runs", async (t) => {
    const { blocked, shop, somebody, runRequest } = await createBlockedUser(t, { maxConcurrency: 1 });
    const { ctx } = shop.service;
    const running = run(somebody, runRequest);
    await blocked.arrivals(1);
    for (let minute = 0; minute < 20; minute++) {
      shop.clock.forward(60_000);
      await renewLeases(ctx);
    }
    await failAbandonedRuns(ctx);
    assertError(await run(somebody, runRequest), 429, "KEY_CONCURRENCY_LIMIT");
    blocked.answer();
    assert.equal((await running).status, 200);
    assert.equal((await newestRun(somebody)).status, "completed");
  });
});

test("concurrentRuns of a plan: one more run is 429; another account is not limited", async (t) => {
  const blocked = await startBlockedProvider();
  const free = { ...builtInPlans.plans.free, concurrentRuns: 2 };
  const planConfig = { ...builtInPlans, plans: { ...builtInPlans.plans, free } };
  const shop = await openMarket({ providers: { baseUrls: { openai: blocked.url } }, config: { planConfig } });
  t.after(async () => {
    await shop.close();
    await blocked.close();
  });
  const begin = async () => {
    const somebody = await shop.createUser();
    const runRequest = {
      productId: await createDraft(somebody),
      apiKeyId: await createProviderKey(somebody),
    };
    return { somebody, runRequest, running: [1, 2].map(() => run(somebody, runRequest)) };
  };
  const { somebody, runRequest, running } = await begin();
  await blocked.arrivals(2);
  for (const headers of [{}, { prefer: "respond-async" }])
    assertError(await run(somebody, runRequest, headers), 429, "RATE_LIMIT_EXCEEDED");
  const refused = await run(somebody, { ...runRequest, stream: true });
  assertError(refused, 429, "RATE_LIMIT_EXCEEDED");
  assert.match(refused.body.error.message, /^2 runs .* larger plan/);
  const others = await begin();
  await blocked.arrivals(4);
  const another = await shop.createUser();
  const limited = {
    productId: await createDraft(another),
    apiKeyId: await createProviderKey(another, { maxConcurrency: 1 }),
  };
  running.push(run(another, limited));
  await blocked.arrivals(5);
  // A run that its key refuses does not count.
  for (let times = 0; times < 3; times++)
    assertError(await run(another, limited), 429, "KEY_CONCURRENCY_LIMIT");
  blocked.answer();
  for (const reply of await Promise.all([...running, ...others.running])) assert.equal(reply.status, 200);
  assert.equal((await run(somebody, runRequest)).status, 200);
});

suite("maxConcurrency of a key", () => {
  test("ten concurrent runs: are limited, and the next one starts when one ends", async (t) => {
    const { blocked, somebody, runRequest } = await createBlockedUser(t, { maxConcurrency: 3 });
    const replies: Reply[] = [];
    const running = Array.from({ length: 10 }, () =>
      run(somebody, runRequest).then((reply) => void replies.push(reply)),
    );
    await becomes(
      async () => replies.length,
      (count) => count >= 7,
    );
    await blocked.arrivals(3);
    for (const refused of replies) {
      const details = assertError(refused, 429, "KEY_CONCURRENCY_LIMIT");
      assert.equal(details.source, "marketplace");
      assert.equal(refused.headers.get("retry-after"), "1");
    }
    assert.equal((await somebody.get("/v1/ai/executions")).body.meta.total, 3, "a refused run leaves no row");
    blocked.answer();
    await Promise.all(running);
    assert.equal(blocked.arrived(), 3);
    assert.equal(replies.filter(({ status }) => status === 200).length, 3);
    assert.equal((await run(somebody, runRequest)).status, 200);
  });

  test("runs of dead processes: do not count", async (t) => {
    const { blocked, shop, somebody, runRequest } = await createBlockedUser(t, { maxConcurrency: 1 });
    const lost = run(somebody, runRequest);
    await blocked.arrivals(1);
    assertError(await run(somebody, runRequest), 429, "KEY_CONCURRENCY_LIMIT");
    shop.clock.forward(180_000);
    const next = run(somebody, runRequest);
    await blocked.arrivals(2);
    blocked.answer();
    assert.deepEqual([(await next).status, (await lost).status], [200, 200]);
  });

  test("another key of the account: is not limited", async (t) => {
    const { blocked, somebody, runRequest } = await createBlockedUser(t, { maxConcurrency: 1 });
    const first = run(somebody, runRequest);
    await blocked.arrivals(1);
    const second = run(somebody, { ...runRequest, apiKeyId: await createProviderKey(somebody) });
    await blocked.arrivals(2);
    blocked.answer();
    assert.deepEqual([(await first).status, (await second).status], [200, 200]);
  });
});

suite("monthlyBudget of a key", () => {
  /** 2.50 and 10.00 USD for a million tokens: 0.035 USD. */
  const cost = { usage: { input: 10_000, output: 1_000 } };
  const runFor = (apiKeyId: string) => {
    provider.next({ answer: cost });
    return run(owner, { productId, apiKeyId });
  };
  const refuses = async (apiKeyId: string) => {
    const before = provider.requests.length;
    const reply = await run(owner, { productId, apiKeyId });
    const details = assertError(reply, 429, "KEY_BUDGET_EXCEEDED");
    assert.match(reply.body.error.message, /maxTokens.*monthlyBudget/, "names both settings");
    assert.equal(details.source, "marketplace");
    assert.equal(provider.requests.length, before, "the provider is not called");
  };

  test("budget spent: runs are refused until the owner raises it", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.07 });
    for (const _ of [1, 2]) assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    assert.equal((await run(owner, { productId })).status, 200, "the sandbox has no budget");
    await owner.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: 0.08 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    await owner.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: null });
    assert.equal((await runFor(apiKeyId)).status, 200);
  });

  test("concurrent runs without maxTokens and endless answers: stay within the budget", async () => {
    const monthlyBudget = 0.5;
    const apiKeyId = await createProviderKey(owner, { monthlyBudget });
    provider.always({ stream: { pieces: ["On and on."], stop: "length", endless: true } });
    const replies = await Promise.all(
      Array.from({ length: isFullSize ? 50 : 25 }, () => run(owner, { productId, apiKeyId })),
    );
    provider.always(null);
    const answered = replies.filter(({ status }) => status === 200);
    for (const reply of replies.filter(({ status }) => status !== 200))
      assertError(reply, 429, "KEY_BUDGET_EXCEEDED");
    const spent = answered.reduce((sum, { body }) => sum + body.data.usage.estimatedCost, 0);
    assert.ok(answered.length >= 2, "the memory of a call leaves room for another");
    assert.ok(spent <= monthlyBudget && spent > 0.9 * monthlyBudget, `${spent} USD`);
  });

  test("budget reserved by open calls: 429 with the time to wait", async (t) => {
    const { blocked, somebody, runRequest } = await createBlockedUser(t, { monthlyBudget: 0.01 });
    const first = run(somebody, runRequest);
    await blocked.arrivals(1);
    const refused = await run(somebody, runRequest);
    assert.equal(assertError(refused, 429, "KEY_BUDGET_EXCEEDED").reason, "reserved");
    assert.equal(refused.headers.get("retry-after"), "1");
    blocked.answer();
    assert.equal((await first).status, 200);
    assert.equal((await run(somebody, runRequest)).status, 200);
  });

  test("budget over the model's limit: the limit that the provider reports applies", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 1 });
    const sent = () => (provider.requests.at(-1)!.body as { max_tokens: number }).max_tokens;
    const message = "max_tokens is too large: 32768. This model supports at most 16384 completion tokens.";
    provider.next({ status: 400, body: { error: { message, type: "invalid_request_error" } } });
    assert.equal((await run(owner, { productId, apiKeyId })).status, 200);
    assert.equal(sent(), 16_383);
    provider.next({ status: 400, body: { error: { message, type: "invalid_request_error" } } });
    const named = { productId, apiKeyId, options: { maxTokens: 32_768 } };
    assertError(await run(owner, named), 502, "PROVIDER_ERROR");
  });

  test("next month in UTC: the budget starts again", async () => {
    market.clock.now = new Date("2026-06-30T23:59:59.000Z");
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    market.clock.now = new Date("2026-06-30T23:59:59.999Z");
    await refuses(apiKeyId);
    market.clock.now = new Date("2026-07-01T00:00:00.000Z");
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
  });

  test("failed runs without usage: do not count", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    provider.next({ status: 400 });
    assertError(await run(owner, { productId, apiKeyId }), 502, "PROVIDER_ERROR");
    assert.equal((await runFor(apiKeyId)).status, 200);
  });

  test("filtered answer: its usage counts", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    provider.next({ answer: { ...cost, text: "", stop: "filter" } });
    assertError(await run(owner, { productId, apiKeyId }), 422, "CONTENT_FILTERED");
    await refuses(apiKeyId);
  });

  test("deleted history: the budget stays spent", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const { executionId } = (await runFor(apiKeyId)).body.data;
    assert.equal((await owner.delete(`/v1/ai/executions/${executionId}`)).status, 200);
    await refuses(apiKeyId);
  });

  test("another key of the account: has its own budget", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const other = await createProviderKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    assert.equal((await runFor(other)).status, 200);
  });

  test("budget spent: concurrent runs are refused", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await Promise.all(Array.from({ length: runs(10) }, () => refuses(apiKeyId)));
  });
});
