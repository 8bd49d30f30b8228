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

const MOST_HELD = 8;

let market: Market;
let held: Awaited<ReturnType<typeof startBlockedProvider>>;
let worker: ReturnType<typeof startWorker>;
before(async () => {
  market = await openMarket();
  held = await startBlockedProvider();
});
after(async () => {
  await worker.stop();
  await market.close();
  await held.close();
});

/** So many runs of somebody's, whose provider does not answer. */
async function hasCrowd(owner: Client, count: number): Promise<string[]> {
  const ollama = await createProviderKey(owner, { provider: "ollama", baseUrl: held.url });
  const workflowId = await createWorkflow(owner, { steps: [promptStep("slow", "x")] });
  return Promise.all(
    Array.from({ length: count }, () => startExecution(owner, workflowId, { apiKeys: { openai: ollama } })),
  );
}

test("runs of one account do not keep those of another waiting, however many and however slow they are", async () => {
  const [many, also, few] = await Promise.all(
    ["Many", "Also many", "Few"].map((name) => market.createUser({ name })),
  );
  const crowds = [await hasCrowd(many!, 30), await hasCrowd(also!, 30)];
  const single = await createWorkflow(few!, { steps: [echoStep("quick", "x")] });
  const id = await startExecution(few!, single);
  worker = startWorker(market, { mostHeld: MOST_HELD });
  await untilStatus(few!, id, "completed");
  assert.ok(held.arrived() < MOST_HELD, "a place is free for whoever comes next");
  await untilStatus(few!, await startExecution(few!, single), "completed");
  held.answer();
  for (const [owner, ids] of [
    [many!, crowds[0]!],
    [also!, crowds[1]!],
  ] as const)
    for (const one of ids) await untilStatus(owner, one, "completed");
});
