import assert from "node:assert/strict";
import { after, before, suite, type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { createDraft } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, newestRun, providersAt, run, startBlockedProvider } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { builtInPlans } from "../../core/config/plan-config.ts";
import { failAbandonedRuns } from "../executions/executions.ts";
import { renewLeases } from "../executions/leases.ts";

/** Far longer than any step of these tests takes, far shorter than a test may. */
const _PATIENCE_MS = 60_000;

let provider: ProviderServer;
let market: Market;
let owner: Client;
let productId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  owner = await market.createUser();
  productId = await createDraft(owner, { models: { openai: "gpt-4o" } });
});
after(async () => {
  await market.close();
  await provider.close();
});

/** An owner of their own, whose OpenAI answers when it is told to. */
async function hasHeldRuns(t: TestContext, keyWish: Record<string, unknown>) {
  const held = await startBlockedProvider();
  const shop = await openMarket({ providers: { baseUrls: { openai: held.url } } });
  t.after(async () => {
    await shop.close();
    await held.close();
  });
  const somebody = await shop.createUser();
  const wish = {
    productId: await createDraft(somebody, { models: { openai: "gpt-4o" } }),
    apiKeyId: await createProviderKey(somebody, keyWish),
  };
  return { held, shop, somebody, wish };
}

suite("a client that hangs up", () => {
  const hangUp = async (more: { topic?: string; key?: Record<string, unknown> } = {}) => {
    const { topic = "rain", key = {} } = more;
    const wish = { productId, variables: { topic } };
    const client = new AbortController();
    const apiKeyId = await createProviderKey(owner, key);
    provider.next("hang");
    const arrival = provider.nextRequest();
    const call = owner.request("POST", "/v1/ai/execute", {
      json: { ...wish, apiKeyId },
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

  test("ends the provider's call within a second, and the run is canceled", async () => {
    const { hungUpAt } = await hangUp();
    await provider.clientGone;
    assert.ok(performance.now() - hungUpAt < 1_000);
    const { id, error, usage } = await untilEnded();
    const { body } = await owner.get(`/v1/ai/executions/${id}`);
    const { status, variables, output, completedAt } = body.data;
    assert.deepEqual({ status, variables, output }, { status: "canceled", variables: null, output: null });
    assert.equal(error.code, "client_gone");
    assert.deepEqual([usage.promptTokens > 0, usage.costKnown, usage.estimated], [true, true, true]);
    assert.ok(usage.estimatedCost > 0, "the provider had the prompt, and may bill it");
    assert.notEqual(completedAt, null);
    assert.ok(
      !market.logs.some((line) => JSON.parse(line).level >= 50),
      "nobody's fault, so no error is logged",
    );
  });

  test("is charged for the prompt by the budget of the key", async () => {
    // 20,000 bytes hold at most 0.05 USD, and count as 5,000 tokens: 0.0125 USD.
    const long = { topic: "rain".repeat(5_000), key: { monthlyBudget: 0.06 } };
    const { apiKeyId } = await hangUp(long);
    const { usage } = await untilEnded();
    assert.ok(usage.promptTokens >= 5_000 && usage.estimatedCost >= 0.0125, JSON.stringify(usage));
    const wish = { productId, apiKeyId, variables: { topic: long.topic } };
    assertError(await run(owner, wish), 429, "KEY_BUDGET_EXCEEDED");
  });

  test("with an Idempotency-Key lets it run to its end, and the repeat gets the one answer", async (t) => {
    const { held, somebody, wish } = await hasHeldRuns(t, {});
    const headers = { "idempotency-key": "patient" };
    const client = new AbortController();
    const json = { ...wish, variables: { topic: "rain" } };
    const call = somebody.request("POST", "/v1/ai/execute", { json, headers, signal: client.signal });
    await held.arrivals(1);
    client.abort();
    await assert.rejects(call);
    const repeat = () => somebody.post("/v1/ai/execute", json, headers);
    assertError(await repeat(), 409, "IDEMPOTENCY_IN_PROGRESS");
    held.answer();
    const again = await becomes(repeat, ({ status }) => status !== 409);
    assert.equal(again.status, 200, again.text);
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    assert.equal(again.body.data.output, "At last.");
    assert.equal(held.arrived(), 1);
    const { id, status } = await newestRun(somebody);
    assert.deepEqual([id, status], [again.body.data.executionId, "completed"]);
  });
});

test("a run that outlives the shutdown's grace is given up: 503, and recorded as failed", async (t) => {
  const held = await startBlockedProvider();
  const shop = await openMarket({ providers: { baseUrls: { openai: held.url } }, graceMs: 100 });
  const { rows } = await shop.query("select current_database() as name");
  const address = new URL(process.env["STOA_TEST_DATABASE"]!);
  address.pathname = `/${rows[0].name}`;
  const database = new pg.Client({ connectionString: address.href });
  await database.connect();
  t.after(async () => {
    await database.end();
    await held.close();
  });
  const somebody = await shop.createUser();
  const apiKeyId = await createProviderKey(somebody);
  const running = run(somebody, { productId: await createDraft(somebody), apiKeyId });
  await held.arrivals(1);
  const closing = shop.service.close();
  const reply = await running;
  const { executionId } = assertError(reply, 503, "SERVICE_UNAVAILABLE");
  await closing;
  const history = await database.query("select status, error_code as code, sealed_texts from executions");
  assert.deepEqual(history.rows, [{ status: "failed", code: "shutdown", sealed_texts: null }]);
  assert.match(executionId, /^exec_/);
});

suite("a provider that is silent for long", () => {
  test("is waited for as long as options.timeoutSeconds says, and counted when its time is over", async (t) => {
    const shop = await openMarket({
      providers: providersAt(provider),
      deadlines: { firstByteMs: 100, idleMs: 100 },
    });
    t.after(() => shop.close());
    const somebody = await shop.createUser();
    const wish = {
      productId: await createDraft(somebody, { models: { openai: "gpt-4o" } }),
      apiKeyId: await createProviderKey(somebody),
    };
    const gate = () => wait(150);
    provider.next({ stream: { pieces: ["At last."], gate } });
    const reply = await run(somebody, { ...wish, options: { timeoutSeconds: 600 } });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.body.data.output, "At last.");
    provider.next("hang");
    const { phase } = assertError(await run(somebody, wish), 504, "PROVIDER_TIMEOUT");
    const { usage } = await newestRun(somebody);
    assert.equal(phase, "first_byte");
    assert.deepEqual([usage.promptTokens > 0, usage.estimatedCost > 0, usage.estimated], [true, true, true]);
    for (const timeoutSeconds of [0, 1_801, 1.5])
      assertError(
        await run(somebody, { ...wish, options: { timeoutSeconds } }),
        400,
        "INVALID_REQUEST",
        "options.timeoutSeconds",
      );
  });

  test("keeps its run and its place of the key as long as the process lives", async (t) => {
    const { held, shop, somebody, wish } = await hasHeldRuns(t, { maxConcurrency: 1 });
    const { ctx } = shop.service;
    const running = run(somebody, wish);
    await held.arrivals(1);
    for (let minute = 0; minute < 20; minute++) {
      shop.clock.forward(60_000);
      await renewLeases(ctx);
    }
    await failAbandonedRuns(ctx);
    assertError(await run(somebody, wish), 429, "KEY_CONCURRENCY_LIMIT");
    held.answer();
    assert.equal((await running).status, 200);
    assert.equal((await newestRun(somebody)).status, "completed");
  });
});

test("a plan's concurrentRuns: one more is refused with 429 until one has ended, another account is not", async (t) => {
  const held = await startBlockedProvider();
  const free = { ...builtInPlans.plans.free, concurrentRuns: 2 };
  const planConfig = { ...builtInPlans, plans: { ...builtInPlans.plans, free } };
  const shop = await openMarket({ providers: { baseUrls: { openai: held.url } }, config: { planConfig } });
  t.after(async () => {
    await shop.close();
    await held.close();
  });
  const begin = async () => {
    const somebody = await shop.createUser();
    const wish = { productId: await createDraft(somebody), apiKeyId: await createProviderKey(somebody) };
    return { somebody, wish, running: [1, 2].map(() => run(somebody, wish)) };
  };
  const { somebody, wish, running } = await begin();
  await held.arrivals(2);
  for (const headers of [{}, { prefer: "respond-async" }])
    assertError(await run(somebody, wish, headers), 429, "RATE_LIMIT_EXCEEDED");
  const refused = await run(somebody, { ...wish, stream: true });
  assertError(refused, 429, "RATE_LIMIT_EXCEEDED");
  assert.match(refused.body.error.message, /^2 runs .* larger plan/);
  const others = await begin();
  await held.arrivals(4);
  held.answer();
  for (const reply of await Promise.all([...running, ...others.running])) assert.equal(reply.status, 200);
  assert.equal((await run(somebody, wish)).status, 200);
});

suite("a key's maxConcurrency", () => {
  test("holds when ten runs start at once, and lets the next in when one ends", async (t) => {
    const { held, somebody, wish } = await hasHeldRuns(t, { maxConcurrency: 3 });
    const replies: Reply[] = [];
    const running = Array.from({ length: 10 }, () =>
      run(somebody, wish).then((reply) => void replies.push(reply)),
    );
    await becomes(
      async () => replies.length,
      (count) => count >= 7,
    );
    await held.arrivals(3);
    for (const refused of replies) {
      const details = assertError(refused, 429, "KEY_CONCURRENCY_LIMIT");
      assert.equal(details.source, "marketplace");
      assert.equal(refused.headers.get("retry-after"), "1");
    }
    assert.equal((await somebody.get("/v1/ai/executions")).body.meta.total, 3, "a refused run leaves no row");
    held.answer();
    await Promise.all(running);
    assert.equal(held.arrived(), 3);
    assert.equal(replies.filter(({ status }) => status === 200).length, 3);
    assert.equal((await run(somebody, wish)).status, 200);
  });

  test("does not count runs whose process died", async (t) => {
    const { held, shop, somebody, wish } = await hasHeldRuns(t, { maxConcurrency: 1 });
    const lost = run(somebody, wish);
    await held.arrivals(1);
    assertError(await run(somebody, wish), 429, "KEY_CONCURRENCY_LIMIT");
    shop.clock.forward(180_000);
    const next = run(somebody, wish);
    await held.arrivals(2);
    held.answer();
    assert.deepEqual([(await next).status, (await lost).status], [200, 200]);
  });

  test("is of one key: another key of the same account runs beside it", async (t) => {
    const { held, somebody, wish } = await hasHeldRuns(t, { maxConcurrency: 1 });
    const first = run(somebody, wish);
    await held.arrivals(1);
    const second = run(somebody, { ...wish, apiKeyId: await createProviderKey(somebody) });
    await held.arrivals(2);
    held.answer();
    assert.deepEqual([(await first).status, (await second).status], [200, 200]);
  });
});

suite("a key's monthlyBudget", () => {
  /** 2.50 and 10.00 USD a million tokens: 0.035 USD. */
  const cost = { usage: { input: 10_000, output: 1_000 } };
  const runFor = (apiKeyId: string) => {
    provider.next({ answer: cost });
    return run(owner, { productId, apiKeyId });
  };
  const refuses = async (apiKeyId: string) => {
    const before = provider.requests.length;
    const reply = await run(owner, { productId, apiKeyId });
    const details = assertError(reply, 429, "KEY_BUDGET_EXCEEDED");
    assert.match(reply.body.error.message, /maxTokens.*monthlyBudget/, "what there is to do");
    assert.equal(details.source, "marketplace");
    assert.equal(provider.requests.length, before, "the provider is not asked");
  };

  test("refuses once it is used up, until its owner gives more", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.07 });
    for (const _ of [1, 2]) assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    assert.equal((await run(owner, { productId })).status, 200, "the sandbox needs no budget");
    await owner.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: 0.08 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    await owner.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: null });
    assert.equal((await runFor(apiKeyId)).status, 200);
  });

  test("50 runs at once that name no maxTokens, and are answered without end, never pass it", async () => {
    const monthlyBudget = 0.5;
    const apiKeyId = await createProviderKey(owner, { monthlyBudget });
    provider.always({ stream: { pieces: ["On and on."], stop: "length", endless: true } });
    const replies = await Promise.all(Array.from({ length: 50 }, () => run(owner, { productId, apiKeyId })));
    provider.always(null);
    const answered = replies.filter(({ status }) => status === 200);
    for (const reply of replies.filter(({ status }) => status !== 200))
      assertError(reply, 429, "KEY_BUDGET_EXCEEDED");
    const spent = answered.reduce((sum, { body }) => sum + body.data.usage.estimatedCost, 0);
    assert.ok(answered.length >= 2, "what a call holds leaves room for another");
    assert.ok(spent <= monthlyBudget && spent > 0.9 * monthlyBudget, `${spent} USD`);
  });

  test("that calls under way hold refuses with a time to come back", async (t) => {
    const { held, somebody, wish } = await hasHeldRuns(t, { monthlyBudget: 0.01 });
    const first = run(somebody, wish);
    await held.arrivals(1);
    const refused = await run(somebody, wish);
    assert.equal(assertError(refused, 429, "KEY_BUDGET_EXCEEDED").reason, "reserved");
    assert.equal(refused.headers.get("retry-after"), "1");
    held.answer();
    assert.equal((await first).status, 200);
    assert.equal((await run(somebody, wish)).status, 200);
  });

  test("lowers the length of an answer to what the model takes, as the provider tells it", async () => {
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

  test("begins anew with the month in UTC", async () => {
    market.clock.now = new Date("2026-06-30T23:59:59.000Z");
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    market.clock.now = new Date("2026-06-30T23:59:59.999Z");
    await refuses(apiKeyId);
    market.clock.now = new Date("2026-07-01T00:00:00.000Z");
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
  });

  test("is not touched by runs that failed before anything was counted", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    provider.next({ status: 400 });
    assertError(await run(owner, { productId, apiKeyId }), 502, "PROVIDER_ERROR");
    assert.equal((await runFor(apiKeyId)).status, 200);
  });

  test("counts what a filtered answer cost", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    provider.next({ answer: { ...cost, text: "", stop: "filter" } });
    assertError(await run(owner, { productId, apiKeyId }), 422, "CONTENT_FILTERED");
    await refuses(apiKeyId);
  });

  test("stays used up when the history is deleted", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const { executionId } = (await runFor(apiKeyId)).body.data;
    assert.equal((await owner.delete(`/v1/ai/executions/${executionId}`)).status, 200);
    await refuses(apiKeyId);
  });

  test("is of one key: another key of the same account has its own", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    const other = await createProviderKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    assert.equal((await runFor(other)).status, 200);
  });

  test("that is used up holds when ten runs start at once", async () => {
    const apiKeyId = await createProviderKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await Promise.all(Array.from({ length: 10 }, () => refuses(apiKeyId)));
  });
});
