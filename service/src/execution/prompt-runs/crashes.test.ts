import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { repeatAfterCrash } from "../../../test/crash-setup.ts";
import { startCrashingService } from "../../../test/crashing-service.ts";
import { createDraft } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { startOutage } from "../../../test/outage.ts";
import {
  createProviderKey,
  newestRun,
  run,
  runToCompletion,
  startBlockedProvider,
} from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import { failAbandonedRuns } from "../executions/executions.ts";
import { renewLeases } from "../executions/leases.ts";
import { LEASE_MS } from "../provider-keys/provider-calls.ts";
import { RUN_LEASE_MS } from "./run-record.ts";

test("a run whose process is killed is told as failed by another one, and frees what it took of its key", async (t) => {
  const market = await openMarket();
  const held = await startBlockedProvider();
  t.after(async () => {
    await market.close();
    await held.close();
  });
  const { ctx } = market.service;
  const owner = await market.createUser();
  const apiKeyId = await createProviderKey(owner, {
    provider: "ollama",
    baseUrl: held.url,
    maxConcurrency: 1,
  });
  const wish = { productId: await createDraft(owner), apiKeyId, options: { model: "some-model" } };
  const doomed = await startCrashingService(market, "http://127.0.0.1:9");
  const asked = owner.post(`${doomed.origin}/v1/ai/execute`, { ...wish, variables: { topic: "rain" } });
  await held.arrivals(1);
  doomed.child.kill("SIGKILL");
  await assert.rejects(asked);
  assert.equal(await doomed.ended, "SIGKILL");

  held.answer();
  await failAbandonedRuns(ctx);
  assert.equal((await newestRun(owner)).status, "running", "it may still be slow");
  assertError(await run(owner, wish), 429, "KEY_CONCURRENCY_LIMIT");
  market.clock.forward(RUN_LEASE_MS + 1);
  await failAbandonedRuns(ctx);
  const { status, error } = await newestRun(owner);
  assert.deepEqual([status, error.code], ["failed", "INTERNAL_ERROR"]);
  market.clock.forward(LEASE_MS - RUN_LEASE_MS);
  await runToCompletion(owner, wish);
  assert.equal(held.arrived(), 2, "and is not called again");
});

test("a run whose end is held while the database is away for longer than its lease is failed by no other process", async (t) => {
  const market = await openMarket();
  const held = await startBlockedProvider();
  t.after(async () => {
    await market.close();
    await held.close();
  });
  const { ctx } = market.service;
  const other = await market.startNode();
  const owner = await market.createUser();
  const apiKeyId = await createProviderKey(owner, { provider: "ollama", baseUrl: held.url });
  const wish = { productId: await createDraft(owner), apiKeyId, options: { model: "some-model" } };
  const running = run(owner, wish);
  await held.arrivals(1);
  const comesBack = await startOutage(market, "executions");
  held.answer();
  assert.equal((await running).status, 200);
  market.clock.forward(2 * RUN_LEASE_MS);
  for (const node of [ctx, other.ctx]) await assert.rejects(renewLeases(node), { code: "57P01" });
  await comesBack({ butNot: "new.status = 'completed'" });
  await failAbandonedRuns(other.ctx);
  assert.equal((await newestRun(owner)).status, "running");
  await renewLeases(ctx);
  market.clock.forward(RUN_LEASE_MS);
  await renewLeases(other.ctx);
  await failAbandonedRuns(other.ctx);
  assert.equal((await newestRun(owner)).status, "running", "its lease was renewed");
  await comesBack();
  await becomes(
    () => newestRun(owner),
    ({ status }) => status === "completed",
  );
});

suite("POST under an Idempotency-Key whose process is killed during the provider's call", () => {
  let market: Market;
  let held: Awaited<ReturnType<typeof startBlockedProvider>>;
  let owner: Client;
  let productId: string;
  let apiKeyId: string;
  before(async () => {
    market = await openMarket();
    held = await startBlockedProvider();
    owner = await market.createUser();
    apiKeyId = await createProviderKey(owner, { provider: "ollama", baseUrl: held.url });
    productId = await createDraft(owner);
  });
  after(async () => {
    await market.close();
    await held.close();
  });

  const runBody = () => ({
    productId,
    apiKeyId,
    variables: { topic: "rain" },
    options: { model: "some-model" },
  });
  const chatBody = () => ({
    model: productId,
    metadata: { apiKeyId, model: "some-model" },
    messages: [{ role: "user", content: JSON.stringify({ topic: "rain" }) }],
  });

  for (const [words, path, bodyOf] of [
    ["/ai/execute", "/v1/ai/execute", runBody],
    ["/ai/execute, streamed", "/v1/ai/execute", () => ({ ...runBody(), stream: true })],
    ["/openai/chat/completions", "/v1/openai/chat/completions", chatBody],
    [
      "/openai/chat/completions, streamed",
      "/v1/openai/chat/completions",
      () => ({ ...chatBody(), stream: true }),
    ],
  ] as const) {
    test(`${words}: the repeat answers that execution's failure and makes no second call`, async () => {
      const before = held.arrived();
      const doomed = await startCrashingService(market, "http://127.0.0.1:9");
      const key = { "idempotency-key": words };
      const asked = owner.post(`${doomed.origin}${path}`, bodyOf(), key);
      await held.arrivals(before + 1);
      doomed.child.kill("SIGKILL");
      await assert.rejects(asked);
      await doomed.ended;
      market.clock.forward(RUN_LEASE_MS);
      const early = await owner.post(path, bodyOf(), key);
      assert.equal(early.status, 409, early.text);
      assert.equal(early.headers.get("retry-after"), "1");
      assert.equal((await newestRun(owner)).status, "running", "until its lease is over it may live");
      const repeat = await repeatAfterCrash(market, () => owner.post(path, bodyOf(), key), 1);
      // Behind OpenAI's door its clients would repeat a 500.
      assert.ok([500, 406].includes(repeat.status), repeat.text);
      const { executionId } = repeat.body.error.details;
      const { status, error } = (await owner.get(`/v1/ai/executions/${executionId}`)).body.data;
      assert.deepEqual([status, error.code], ["failed", "INTERNAL_ERROR"]);
      assert.equal(held.arrived(), before + 1);
    });
  }
});
