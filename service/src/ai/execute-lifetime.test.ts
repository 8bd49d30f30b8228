import assert from "node:assert/strict";
import { after, before, suite, type TestContext, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import pg from "pg";
import { hasDraft } from "../../test/factories.ts";
import { assertError, type Client, type Market, openMarket, type Reply } from "../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../test/provider-server.ts";
import { allAt, hasKey, newestRun, run, startHeldProvider } from "../../test/runs.ts";

/** Far longer than any step of these tests takes, far shorter than a test may. */
const PATIENCE_MS = 60_000;

let provider: ProviderServer;
let market: Market;
let owner: Client;
let productId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: allAt(provider) });
  owner = await market.hasUser();
  productId = await hasDraft(owner, { models: { openai: "gpt-4o" } });
});
after(async () => {
  await market.close();
  await provider.close();
});

/** An owner of their own, whose OpenAI answers when it is told to. */
async function hasHeldRuns(t: TestContext, keyWish: Record<string, unknown>) {
  const held = await startHeldProvider();
  const shop = await openMarket({ providers: { baseUrls: { openai: held.url } } });
  t.after(async () => {
    await shop.close();
    await held.close();
  });
  const somebody = await shop.hasUser();
  const wish = {
    productId: await hasDraft(somebody, { models: { openai: "gpt-4o" } }),
    apiKeyId: await hasKey(somebody, keyWish),
  };
  return { held, shop, somebody, wish };
}

/** Asks until it is so; what a client that hung up cannot be told. */
async function becomes<T>(read: () => Promise<T>, isSo: (value: T) => boolean): Promise<T> {
  const giveUpAt = Date.now() + PATIENCE_MS;
  for (;;) {
    const value = await read();
    if (isSo(value)) return value;
    assert.ok(Date.now() < giveUpAt, `never so: ${JSON.stringify(value)}`);
    await wait(10);
  }
}

suite("a client that hangs up", () => {
  const hangUp = async (headers: Record<string, string>) => {
    const wish = { productId, variables: { topic: "rain" } };
    const client = new AbortController();
    const apiKeyId = await hasKey(owner);
    provider.next("hang");
    const arrival = provider.nextRequest();
    const call = owner.request("POST", "/v1/ai/execute", {
      json: { ...wish, apiKeyId },
      headers,
      signal: client.signal,
    });
    await arrival;
    const hungUpAt = performance.now();
    client.abort();
    await assert.rejects(call);
    return hungUpAt;
  };

  test("ends the provider's call within a second, and the run is canceled", async () => {
    const hungUpAt = await hangUp({});
    await provider.clientGone;
    assert.ok(performance.now() - hungUpAt < 1_000);
    const { id, error, usage } = await becomes(
      () => newestRun(owner),
      ({ status }) => status !== "running",
    );
    const { body } = await owner.get(`/v1/ai/executions/${id}`);
    const { status, variables, output, completedAt } = body.data;
    assert.deepEqual({ status, variables, output }, { status: "canceled", variables: null, output: null });
    assert.deepEqual([error.code, usage], ["client_gone", null]);
    assert.notEqual(completedAt, null);
    assert.ok(
      !market.logs.some((line) => JSON.parse(line).level >= 50),
      "nobody's fault, so no error is logged",
    );
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
  const held = await startHeldProvider();
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
  const somebody = await shop.hasUser();
  const apiKeyId = await hasKey(somebody);
  const running = run(somebody, { productId: await hasDraft(somebody), apiKeyId });
  await held.arrivals(1);
  const closing = shop.service.close();
  const reply = await running;
  const { executionId } = assertError(reply, 503, "SERVICE_UNAVAILABLE");
  await closing;
  const history = await database.query("select status, error_code as code, sealed_texts from executions");
  assert.deepEqual(history.rows, [{ status: "failed", code: "shutdown", sealed_texts: null }]);
  assert.match(executionId, /^exec_/);
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
    const second = run(somebody, { ...wish, apiKeyId: await hasKey(somebody) });
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
    const apiKeyId = await hasKey(owner, { monthlyBudget: 0.07 });
    for (const _ of [1, 2]) assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    assert.equal((await run(owner, { productId })).status, 200, "the sandbox needs no budget");
    await owner.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: 0.08 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    await owner.patch(`/v1/ai/keys/${apiKeyId}`, { monthlyBudget: null });
    assert.equal((await runFor(apiKeyId)).status, 200);
  });

  test("begins anew with the month in UTC", async () => {
    market.clock.now = new Date("2026-06-30T23:59:59.000Z");
    const apiKeyId = await hasKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    market.clock.now = new Date("2026-06-30T23:59:59.999Z");
    await refuses(apiKeyId);
    market.clock.now = new Date("2026-07-01T00:00:00.000Z");
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
  });

  test("is not touched by runs that failed before anything was counted", async () => {
    const apiKeyId = await hasKey(owner, { monthlyBudget: 0.01 });
    provider.next({ status: 400 });
    assertError(await run(owner, { productId, apiKeyId }), 502, "PROVIDER_ERROR");
    assert.equal((await runFor(apiKeyId)).status, 200);
  });

  test("counts what a filtered answer cost", async () => {
    const apiKeyId = await hasKey(owner, { monthlyBudget: 0.01 });
    provider.next({ answer: { ...cost, text: "", stop: "filter" } });
    assertError(await run(owner, { productId, apiKeyId }), 422, "CONTENT_FILTERED");
    await refuses(apiKeyId);
  });

  test("stays used up when the history is deleted", async () => {
    const apiKeyId = await hasKey(owner, { monthlyBudget: 0.01 });
    const { executionId } = (await runFor(apiKeyId)).body.data;
    assert.equal((await owner.delete(`/v1/ai/executions/${executionId}`)).status, 200);
    await refuses(apiKeyId);
  });

  test("is of one key: another key of the same account has its own", async () => {
    const apiKeyId = await hasKey(owner, { monthlyBudget: 0.01 });
    const other = await hasKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await refuses(apiKeyId);
    assert.equal((await runFor(other)).status, 200);
  });

  test("that is used up holds when ten runs start at once", async () => {
    const apiKeyId = await hasKey(owner, { monthlyBudget: 0.01 });
    assert.equal((await runFor(apiKeyId)).status, 200);
    await Promise.all(Array.from({ length: 10 }, () => refuses(apiKeyId)));
  });
});
