import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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
async function startBlockedRuns(owner: Client, count: number): Promise<string[]> {
  const ollama = await createProviderKey(owner, { provider: "ollama", baseUrl: blocked.url });
  const workflowId = await createWorkflow(owner, { steps: [promptStep("slow", "x")] });
  return Promise.all(
    Array.from({ length: count }, () => startExecution(owner, workflowId, { apiKeys: { openai: ollama } })),
  );
}

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
