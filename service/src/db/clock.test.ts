import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { openMarket } from "../../test/market.ts";
import { begins, hasWorkflow, transform } from "../../test/workflows.ts";
import { openBase } from "../base.ts";
import { WorkflowWorker } from "../engine/worker.ts";
import { createLog } from "../log.ts";
import { Evaluator } from "../workflows/evaluate.ts";

const AHEAD_MS = 20_000;
const LEASE_MS = 10_000;

test("leases: a worker whose clock is 20 s ahead takes over no run that another one holds", async () => {
  const market = await openMarket();
  const author = await market.hasUser();
  const id = await hasWorkflow(author, { steps: [transform("one", "1")] });
  const evaluator = new Evaluator();
  mock.timers.enable({ apis: ["Date"], now: Date.now() + AHEAD_MS });
  const base = await openBase(
    market.service.ctx.config,
    { target: market.target, maxConnections: 2 },
    { log: createLog("silent") },
  );
  try {
    await begins(author, id);
    const isClaimed = async (dueAt: string) => {
      await market.query(`update workflow_runs set lease_token = gen_random_uuid(), due_at = ${dueAt}`);
      const worker = new WorkflowWorker(base.ctx, evaluator);
      await worker.round();
      await worker.idle();
      const { rows } = await market.query("select status from executions");
      return rows[0].status === "completed";
    };
    assert.equal(await isClaimed(`clock_timestamp() + interval '${LEASE_MS} ms'`), false);
    assert.equal(await isClaimed("clock_timestamp() - interval '1 s'"), true);
  } finally {
    mock.timers.reset();
    await evaluator.close();
    await base.close();
    await market.close();
  }
});
