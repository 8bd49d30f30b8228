import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { createProviderKey, startBlockedProvider } from "../../../test/runs.ts";
import {
  createWorkflow,
  echoStep,
  promptStep,
  startExecution,
  startWorker,
  untilStatus,
} from "../../../test/workflows.ts";

const MAX_RUNS = 8;

let market: Market;
let blocked: Awaited<ReturnType<typeof startBlockedProvider>>;
let worker: ReturnType<typeof startWorker>;
before(async () => {
  market = await openMarket();
  blocked = await startBlockedProvider();
});
after(async () => {
  await worker.stop();
  await market.close();
  await blocked.close();
});

/** Starts runs whose provider does not answer. */
async function startBlockedRuns(
  owner: Client,
  count: number,
  { url }: { url: string } = blocked,
): Promise<string[]> {
  const ollama = await createProviderKey(owner, { provider: "ollama", baseUrl: url });
  const workflowId = await createWorkflow(owner, { steps: [promptStep("slow", "x")] });
  return Promise.all(
    Array.from({ length: count }, () => startExecution(owner, workflowId, { apiKeys: { openai: ollama } })),
  );
}

test("a request that starts a run while the worker claims another: the worker drives no more than it may", async (t) => {
  const [early, late] = await Promise.all(["Early", "Late"].map((name) => market.createUser({ name })));
  const provider = await startBlockedProvider();
  const [waiting] = await startBlockedRuns(early!, 1, provider);
  const client = await market.service.ctx.pool.connect();
  await client.query("begin");
  await client.query("lock table workflow_runs in exclusive mode");
  const only = startWorker(market, { mostHeld: 1 });
  t.after(async () => {
    provider.answer();
    await only.stop();
    await provider.close();
  });
  await waitForBlockedStatements(market);
  const starting = startBlockedRuns(late!, 1, provider);
  await waitForBlockedStatements(market, 2);
  await client.query("commit");
  client.release();
  const [started] = await starting;
  await provider.arrivals(1);
  assert.equal(await only.worker.claimDueRuns(), false, "it has no place");
  assert.equal(provider.arrived(), 1);
  provider.answer();
  await untilStatus(early!, waiting!, "completed");
  await untilStatus(late!, started!, "completed");
});

test("a worker with one place: the run that waits longer starts first", async (t) => {
  const [early, late] = await Promise.all(["Earlier", "Later"].map((name) => market.createUser({ name })));
  const provider = await startBlockedProvider();
  const [first] = await startBlockedRuns(early!, 1, provider);
  market.clock.forward(1_000);
  const [second] = await startBlockedRuns(late!, 1, provider);
  const only = startWorker(market, { mostHeld: 1 });
  t.after(async () => {
    provider.answer();
    await only.stop();
    await provider.close();
  });
  await provider.arrivals(1);
  await untilStatus(early!, first!, "running");
  await untilStatus(late!, second!, "queued");
  provider.answer();
  await untilStatus(late!, second!, "completed");
});

test("workers full of slow runs of some accounts: runs of another account still start", async () => {
  const [many, alsoMany, few] = await Promise.all(
    ["Many", "Also many", "Few"].map((name) => market.createUser({ name })),
  );
  const blockedRuns = [await startBlockedRuns(many!, 30), await startBlockedRuns(alsoMany!, 30)];
  const single = await createWorkflow(few!, { steps: [echoStep("quick", "x")] });
  const id = await startExecution(few!, single);
  worker = startWorker(market, { mostHeld: MAX_RUNS });
  await untilStatus(few!, id, "completed");
  assert.ok(blocked.arrived() < MAX_RUNS, "one slot is free");
  await untilStatus(few!, await startExecution(few!, single), "completed");
  blocked.answer();
  for (const [owner, ids] of [
    [many!, blockedRuns[0]!],
    [alsoMany!, blockedRuns[1]!],
  ] as const)
    for (const one of ids) await untilStatus(owner, one, "completed");
});
