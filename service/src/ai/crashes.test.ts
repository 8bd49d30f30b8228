import assert from "node:assert/strict";
import { test } from "node:test";
import { startDoomed } from "../../test/doomed.ts";
import { hasDraft } from "../../test/factories.ts";
import { assertError, openMarket } from "../../test/market.ts";
import { hasKey, newestRun, ran, run, startHeldProvider } from "../../test/runs.ts";
import { tidyExecutions } from "./executions.ts";
import { LEASE_MS } from "./provider-calls.ts";

test("a run whose process is killed is told as failed by another one, and frees what it took of its key", async (t) => {
  const market = await openMarket();
  const held = await startHeldProvider();
  t.after(async () => {
    await market.close();
    await held.close();
  });
  const { ctx } = market.service;
  const owner = await market.hasUser();
  const apiKeyId = await hasKey(owner, { provider: "ollama", baseUrl: held.url, maxConcurrency: 1 });
  const wish = { productId: await hasDraft(owner), apiKeyId, options: { model: "some-model" } };
  const doomed = await startDoomed(market, "http://127.0.0.1:9");
  const asked = owner.post(`${doomed.origin}/v1/ai/execute`, { ...wish, variables: { topic: "rain" } });
  await held.arrivals(1);
  doomed.child.kill("SIGKILL");
  await assert.rejects(asked);
  assert.equal(await doomed.ended, "SIGKILL");

  held.answer();
  await tidyExecutions(ctx);
  assert.equal((await newestRun(owner)).status, "running", "it may still be slow");
  assertError(await run(owner, wish), 429, "KEY_CONCURRENCY_LIMIT");
  market.clock.forward(LEASE_MS + 1);
  await tidyExecutions(ctx);
  const { status, error } = await newestRun(owner);
  assert.deepEqual([status, error.code], ["failed", "INTERNAL_ERROR"]);
  await ran(owner, wish);
  assert.equal(held.arrived(), 2, "and is not called again");
});
