import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { repeatAfterCrash } from "../../../test/crash-setup.ts";
import { startCrashingService } from "../../../test/crashing-service.ts";
import { createDraft } from "../../../test/factories.ts";
import { inFullRun, oneOf } from "../../../test/full-size.ts";
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

test("process killed during a run: another fails the run and frees its reservation", inFullRun, async (t) => {
  const market = await openMarket();
  const blocked = await startBlockedProvider();
  t.after(async () => {
    await market.close();
    await blocked.close();
  });
  const { ctx } = market.service;
  const owner = await market.createUser();
  const apiKeyId = await createProviderKey(owner, {
    provider: "ollama",
    baseUrl: blocked.url,
    maxConcurrency: 1,
  });
  const request = { productId: await createDraft(owner), apiKeyId, options: { model: "some-model" } };
  const doomed = await startCrashingService(market, "http://127.0.0.1:9");
  const response = owner.post(`${doomed.origin}/v1/ai/execute`, { ...request, variables: { topic: "rain" } });
  await blocked.arrivals(1);
  doomed.child.kill("SIGKILL");
  await assert.rejects(response);
  assert.equal(await doomed.ended, "SIGKILL");

  blocked.answer();
  await failAbandonedRuns(ctx);
  assert.equal((await newestRun(owner)).status, "running", "the lease has not expired");
  assertError(await run(owner, request), 429, "KEY_CONCURRENCY_LIMIT");
  market.clock.forward(RUN_LEASE_MS + 1);
  await failAbandonedRuns(ctx);
  const { status, error } = await newestRun(owner);
  assert.deepEqual([status, error.code], ["failed", "INTERNAL_ERROR"]);
  market.clock.forward(LEASE_MS - RUN_LEASE_MS);
  await runToCompletion(owner, request);
  assert.equal(blocked.arrived(), 2, "and is not called again");
});

test("end that waits longer than its lease for the database: no other process fails the run", async (t) => {
  const market = await openMarket();
  const blocked = await startBlockedProvider();
  t.after(async () => {
    await market.close();
    await blocked.close();
  });
  const { ctx } = market.service;
  const other = await market.startNode();
  const owner = await market.createUser();
  const apiKeyId = await createProviderKey(owner, { provider: "ollama", baseUrl: blocked.url });
  const request = { productId: await createDraft(owner), apiKeyId, options: { model: "some-model" } };
  const running = run(owner, request);
  await blocked.arrivals(1);
  const comesBack = await startOutage(market, "executions");
  blocked.answer();
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

suite("POST with an Idempotency-Key whose process is killed during the provider's call", () => {
  let market: Market;
  let blocked: Awaited<ReturnType<typeof startBlockedProvider>>;
  let owner: Client;
  let productId: string;
  let apiKeyId: string;
  before(async () => {
    market = await openMarket();
    blocked = await startBlockedProvider();
    owner = await market.createUser();
    apiKeyId = await createProviderKey(owner, { provider: "ollama", baseUrl: blocked.url });
    productId = await createDraft(owner);
  });
  after(async () => {
    await market.close();
    await blocked.close();
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

  for (const [words, path, bodyOf] of oneOf([
    ["/ai/execute", "/v1/ai/execute", runBody],
    ["/ai/execute, streamed", "/v1/ai/execute", () => ({ ...runBody(), stream: true })],
    ["/openai/chat/completions", "/v1/openai/chat/completions", chatBody],
    [
      "/openai/chat/completions, streamed",
      "/v1/openai/chat/completions",
      () => ({ ...chatBody(), stream: true }),
    ],
  ] as const)) {
    test(`${words}: the repeated request returns the failure without a second call`, async () => {
      const before = blocked.arrived();
      const doomed = await startCrashingService(market, "http://127.0.0.1:9");
      const key = { "idempotency-key": words };
      const response = owner.post(`${doomed.origin}${path}`, bodyOf(), key);
      await blocked.arrivals(before + 1);
      doomed.child.kill("SIGKILL");
      await assert.rejects(response);
      await doomed.ended;
      market.clock.forward(RUN_LEASE_MS);
      const early = await owner.post(path, bodyOf(), key);
      assert.equal(early.status, 409, early.text);
      assert.equal(early.headers.get("retry-after"), "1");
      assert.equal((await newestRun(owner)).status, "running", "the lease has not expired");
      const repeat = await repeatAfterCrash(market, () => owner.post(path, bodyOf(), key), 1);
      // OpenAI clients would repeat a 500.
      assert.ok([500, 406].includes(repeat.status), repeat.text);
      const { executionId } = repeat.body.error.details;
      const { status, error } = (await owner.get(`/v1/ai/executions/${executionId}`)).body.data;
      assert.deepEqual([status, error.code], ["failed", "INTERNAL_ERROR"]);
      assert.equal(blocked.arrived(), before + 1);
    });
  }
});
