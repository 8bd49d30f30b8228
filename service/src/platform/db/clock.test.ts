import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { openMarket } from "../../../test/market.ts";
import { until } from "../../../test/until.ts";
import { createWorkflow, startExecution, transformStep } from "../../../test/workflows.ts";
import { startService } from "../../app.ts";
import { openBase } from "../../base.ts";
import { createLog } from "../../core/log.ts";
import { WorkflowWorker } from "../../execution/workflow-runs/worker.ts";
import { Evaluator } from "../../formats/workflow-definition/evaluator.ts";

const AHEAD_MS = 20_000;
const LEASE_MS = 10_000;

test("leases: a worker whose clock is 20 s ahead takes over no run that another one holds", async () => {
  const market = await openMarket();
  const author = await market.createUser();
  const id = await createWorkflow(author, { steps: [transformStep("one", "1")] });
  const evaluator = new Evaluator();
  mock.timers.enable({ apis: ["Date"], now: Date.now() + AHEAD_MS });
  const base = await openBase(
    market.service.ctx.config,
    { target: market.target, maxConnections: 2 },
    { log: createLog("silent") },
  );
  try {
    await startExecution(author, id);
    const isClaimed = async (dueAt: string) => {
      await market.query(`update workflow_runs set lease_token = gen_random_uuid(), due_at = ${dueAt}`);
      const worker = new WorkflowWorker(base.ctx, evaluator);
      await worker.claimDueRuns();
      await worker.idle();
      const { rows } = await market.query("select status from executions");
      return rows[0].status === "completed";
    };
    assert.equal(await isClaimed(`clock_timestamp() + interval '${LEASE_MS} ms'`), false);
    // Leases may be judged only after the database has been up for the length of one.
    base.ctx.databaseUptime.hasBeenUpFor = () => true;
    assert.equal(await isClaimed("clock_timestamp() - interval '1 s'"), true);
  } finally {
    mock.timers.reset();
    await evaluator.close();
    await base.close();
    await market.close();
  }
});

test("workers: the machine's clock is more than a minute off, nothing works until it is set, as /readyz and the log say", async (t) => {
  const market = await openMarket();
  const logs: string[] = [];
  const jobs = async () =>
    (await market.query("select from job_runs where period_seconds is not null")).rowCount!;
  // This clock goes on as the database's does.
  const realNow = Date.now;
  const ahead = t.mock.method(Date, "now", () => realNow() + 10 * 60_000);
  const service = await startService(
    { ...market.service.ctx.config, roles: { api: true, worker: true } },
    { target: market.target, maxConnections: 4 },
    { log: createLog("info", { write: (line: string) => void logs.push(line) }) },
  );
  try {
    const offBy = service.ctx.now().getTime() - Date.now();
    assert.ok(Math.abs(offBy + 10 * 60_000) < 5_000, "it has the database's time all the same");
    assert.equal(await jobs(), 0);
    const away = await fetch(`${service.origin}/readyz`);
    assert.equal(away.status, 503);
    assert.match(
      ((await away.json()) as { problems: string[] }).problems[0]!,
      /clock of this machine is (599|600) s ahead/,
    );
    assert.ok(logs.some((line) => /"level":50.*workers do not run/.test(line)));
    ahead.mock.restore();
    await service.ctx.clock.sync();
    await until("it is ready", async () => (await fetch(`${service.origin}/readyz`)).status === 200);
    assert.ok((await jobs()) > 0);
  } finally {
    ahead.mock.restore();
    await service.close();
    await market.close();
  }
});
