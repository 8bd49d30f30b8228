import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import pg from "pg";
import { type Forked, forkProgram } from "../../../test/child.ts";
import { inFullRun } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { type Client, type Market, openMarket } from "../../../test/market.ts";
import { startOutage } from "../../../test/outage.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import type { RunWorkerOptions } from "../../../test/run-worker-process.ts";
import { createProviderKey, providersAt, startBlockedProvider } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import {
  createWorkflow,
  echoStep,
  startExecution,
  startWorker,
  stepOf,
  stepsOf,
  untilStatus,
} from "../../../test/workflows.ts";
import { toUuid } from "../../core/ids.ts";
import { Evaluator } from "../../formats/workflow-definition/evaluator.ts";
import { listPresentWorkers } from "../../platform/db/presence.ts";
import { renewLeases } from "../executions/leases.ts";
import { RUN_LEASE_MS } from "../prompt-runs/run-record.ts";
import { listLeasingWorkers } from "./run-queries.ts";
import { WorkflowWorker } from "./worker.ts";

const PROGRAM = new URL("../../../test/run-worker-process.ts", import.meta.url);
const LEASE_MS = 10_000;
/** Nothing listens here: the tests count deliveries instead of receiving them. */
const webhookUrl = "http://127.0.0.1:9/";

let provider: ProviderServer;
let market: Market;
let author: Client;
let openai: string;
let survivor: ReturnType<typeof startWorker> | null = null;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser({ name: "Author" });
  openai = await createProviderKey(author);
});
afterEach(async () => {
  await survivor?.stop();
  survivor = null;
});
after(async () => {
  await market.close();
  await provider.close();
});

const promptOpenai = (id: string, content: string, more: object = {}) =>
  echoStep(id, content, { provider: "openai", model: "gpt-5-mini", ...more });

async function startWorkerProcess({ hasLock = false } = {}): Promise<Forked> {
  const { config } = market.service.ctx;
  const options: RunWorkerOptions = {
    config,
    target: market.target,
    now: market.clock.now,
    baseUrls: providersAt(provider).baseUrls!,
    hasLock,
  };
  const worker = forkProgram(PROGRAM, options);
  await worker.answer();
  return worker;
}

/** Kills a worker without a shutdown. Another worker continues when the lease has expired. */
async function killWorker({ child, ended }: Forked): Promise<void> {
  child.kill("SIGKILL");
  assert.equal(await ended, "SIGKILL", "the process ran until now");
  market.clock.forward(LEASE_MS + 1);
  survivor = startWorker(market);
}

/** The prompts of the requests after the first `count`. */
const promptsSince = (count: number): string[] =>
  provider.requests
    .slice(count)
    .map(({ body }) => (body as { messages: { content: string }[] }).messages[0]!.content);

async function eventsOf(id: string): Promise<string[]> {
  const { rows } = await market.query(
    "select type, data ->> 'stepId' as step from execution_events where execution_id = $1 order by seq",
    [toUuid("exec", id)],
  );
  return rows.map(({ type, step }) => (step === null ? type : `${type} ${step}`));
}

/** Types of the callback events of a run. */
async function callbacksOf(id: string): Promise<string[]> {
  const { rows } = await market.query(
    "select type from events e join webhook_deliveries d on d.event_id = e.id where e.body like $1",
    [`%${id}%`],
  );
  return rows.map(({ type }) => type);
}

test("worker killed in step 2 of 3: another worker continues and repeats only the open call", async () => {
  const workflowId = await createWorkflow(author, {
    steps: [
      promptOpenai("one", "1"),
      promptOpenai("two", "2", { needs: ["one"] }),
      promptOpenai("three", "3", { needs: ["two"] }),
    ],
    result: "[steps.one.output, steps.two.output, steps.three.output]",
  });
  const before = provider.requests.length;
  provider.next({ answer: { text: "first" } });
  provider.next("hang");
  const worker = await startWorkerProcess();
  const id = await startExecution(author, workflowId, { apiKeys: { openai }, webhookUrl });
  await becomes(
    async () => promptsSince(before),
    (prompts) => prompts.length === 2,
  );
  for (const text of ["second", "third"]) provider.next({ answer: { text } });
  await killWorker(worker);
  assert.deepEqual((await untilStatus(author, id, "completed")).output, ["first", "second", "third"]);
  assert.deepEqual(promptsSince(before), ["1", "2", "2", "3"]);
  const steps = await stepsOf(author, id);
  assert.deepEqual(
    steps.map(({ stepId, attempt, possiblyRepeated }: Record<string, unknown>) => [
      stepId,
      attempt,
      possiblyRepeated,
    ]),
    [
      ["one", 1, false],
      ["two", 1, true],
      ["three", 1, false],
    ],
  );
  assert.deepEqual(await callbacksOf(id), ["execution.completed"]);
});

test(
  "worker with a session lock is killed: another continues before the lease ends",
  inFullRun,
  async (t) => {
    const { ctx } = market.service;
    const workflowId = await createWorkflow(author, {
      steps: [promptOpenai("one", "1")],
      result: "steps.one.output",
    });
    const before = provider.requests.length;
    provider.next("hang");
    const { child, ended } = await startWorkerProcess({ hasLock: true });
    const id = await startExecution(author, workflowId, { apiKeys: { openai } });
    await becomes(
      async () => promptsSince(before),
      (prompts) => prompts.length === 1,
    );
    const evaluator = new Evaluator();
    t.after(() => evaluator.close());
    const other = new WorkflowWorker(ctx, evaluator);
    t.after(() => other.stop());
    const checkTwice = async () => {
      await other.releaseLeasesOfDeadWorkers();
      market.clock.forward(800);
      await other.releaseLeasesOfDeadWorkers();
      await other.claimDueRuns();
      await other.idle();
    };
    await checkTwice();
    assert.equal(promptsSince(before).length, 1, "the worker still runs");

    const leases = await listLeasingWorkers(ctx.db, ctx.now(), new Date(ctx.now().getTime() + LEASE_MS));
    assert.equal(leases.length, 1);
    child.kill("SIGKILL");
    assert.equal(await ended, "SIGKILL");
    await becomes(
      () => listPresentWorkers(ctx.pool, leases),
      (present) => present.size === 0,
    );
    provider.next({ answer: { text: "again" } });
    await checkTwice();
    assert.equal((await untilStatus(author, id, "completed")).output, "again");
    const [step] = await stepsOf(author, id);
    assert.deepEqual([step.attempt, step.possiblyRepeated], [1, true]);
  },
);

test("process killed after it inserted a run under its lease: another worker starts the run when the lease has ended", async () => {
  const { ctx } = market.service;
  const workflowId = await createWorkflow(author, { steps: [echoStep("one", "1")] });
  const until = new Date(ctx.now().getTime() + LEASE_MS);
  const lease = { now: ctx.now(), until, token: ctx.newId(), worker: null };
  const remove = ctx.localWorkers.add({
    reserve: () => ({ lease, drive() {}, release() {} }),
    drives: () => false,
  });
  const id = await startExecution(author, workflowId);
  remove();
  survivor = startWorker(market);
  await survivor.worker.claimDueRuns();
  assert.deepEqual(await eventsOf(id), ["execution.queued"], "the lease holds");
  market.clock.forward(LEASE_MS + 1);
  await untilStatus(author, id, "completed");
});

test(
  "worker killed in a map of 20 items: another worker repeats only the open calls",
  inFullRun,
  async () => {
    const items = Array.from({ length: 20 }, (_, n) => `'item ${n}'`).join(", ");
    const map = { id: "all", type: "map", items: `[${items}]`, maxConcurrency: 20 };
    const workflowId = await createWorkflow(author, {
      steps: [{ ...map, do: { ...promptOpenai("", "{{it}}", { vars: { it: "item" } }), id: undefined } }],
      result: "size(steps.all.output)",
    });
    const before = provider.requests.length;
    for (let n = 0; n < 12; n++) provider.next({ answer: {} });
    for (let n = 0; n < 8; n++) provider.next("hang");
    const worker = await startWorkerProcess();
    const id = await startExecution(author, workflowId, { apiKeys: { openai }, webhookUrl });
    const isDone = ({ status }: { status: string }) => status === "completed";
    const half = await becomes(
      () => stepsOf(author, id),
      (steps) => steps.filter(isDone).length === 12,
    );
    await becomes(
      async () => promptsSince(before),
      (prompts) => prompts.length === 20,
    );
    await killWorker(worker);
    assert.equal((await untilStatus(author, id, "completed")).output, 20);
    const again = promptsSince(before + 20);
    const finished = half.filter(isDone).map(({ index }: { index: number }) => `item ${index}`);
    assert.equal(again.length, 8);
    assert.deepEqual(
      again.filter((prompt) => finished.includes(prompt)),
      [],
    );
    const repeated = (await stepsOf(author, id)).filter(
      ({ possiblyRepeated }: Record<string, unknown>) => possiblyRepeated,
    );
    assert.equal(repeated.length, 8);
    assert.deepEqual(await callbacksOf(id), ["execution.completed"]);
  },
);

test("worker paused past its lease: writes nothing any more", async () => {
  const blocked = await startBlockedProvider();
  const local = await createProviderKey(author, { provider: "ollama", baseUrl: blocked.url });
  const workflowId = await createWorkflow(author, {
    steps: [promptOpenai("slow", "x")],
    result: "steps.slow.output",
  });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: local } });
  const evaluator = new Evaluator();
  // Neither worker gets notifications or renews its lease: the test starts each claim.
  const [paused, other] = [1, 2].map(() => new WorkflowWorker(market.service.ctx, evaluator));
  await paused!.claimDueRuns();
  await blocked.arrivals(1);
  market.clock.forward(LEASE_MS + 1);
  await other!.claimDueRuns();
  await blocked.arrivals(2);
  blocked.answer();
  await Promise.all([paused!.idle(), other!.idle()]);
  const { possiblyRepeated, attempt } = await stepOf(author, id, "slow");
  assert.deepEqual([possiblyRepeated, attempt], [true, 1]);
  assert.deepEqual(await eventsOf(id), [
    "execution.queued",
    "execution.started",
    "step.started slow",
    "step.started slow",
    "step.completed slow",
    "execution.completed",
  ]);
  await Promise.all([paused!.stop(), other!.stop(), blocked.close()]);
  await evaluator.close();
});

test("database outage longer than a lease: no other worker repeats the call whose answer one worker has", async (t) => {
  const blocked = await startBlockedProvider();
  const local = await createProviderKey(author, {
    provider: "ollama",
    baseUrl: blocked.url,
    maxConcurrency: 1,
  });
  const workflowId = await createWorkflow(author, {
    steps: [promptOpenai("slow", "x")],
    result: "steps.slow.output",
  });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: local } });
  const evaluator = new Evaluator();
  const { ctx } = market.service;
  const other = await market.startNode();
  const [holder, survivor] = [ctx, other.ctx].map((node) => new WorkflowWorker(node, evaluator));
  await holder!.claimDueRuns();
  await blocked.arrivals(1);
  const [endOutage, endCallsOutage] = [
    await startOutage(market, "workflow_runs"),
    await startOutage(market, "provider_calls"),
  ];
  t.after(async () => {
    await Promise.all([endOutage(), endCallsOutage(), blocked.close()]);
    await Promise.all([holder!.stop(), survivor!.stop()]);
    await evaluator.close();
  });
  blocked.answer();
  market.clock.forward(LEASE_MS + 1);
  await assert.rejects(holder!.renewLeases(), { code: "57P01" });
  await assert.rejects(survivor!.claimDueRuns(), { code: "57P01" });
  // The writes of the first worker still fail, so the other worker claims first.
  await endOutage({ butNot: "new.lease_token is null" });
  await endCallsOutage({ butNot: "new.ended_at is not null" });
  await survivor!.claimDueRuns();
  await survivor!.idle();
  assert.equal(blocked.arrived(), 1);
  market.clock.forward(RUN_LEASE_MS);
  await holder!.renewLeases();
  await renewLeases(ctx);
  await survivor!.claimDueRuns();
  const leases = await market.query(
    "select lease_until > $1 as renewed from provider_calls where execution_id = $2",
    [market.clock.now, toUuid("exec", id)],
  );
  assert.deepEqual(leases.rows, [{ renewed: true }], "the reservation stays open until its end is written");
  await Promise.all([endOutage(), endCallsOutage()]);
  await holder!.idle();
  const { status, possiblyRepeated } = await stepOf(author, id, "slow");
  assert.deepEqual([blocked.arrived(), status, possiblyRepeated], [1, "completed", false]);
  assert.equal((await untilStatus(author, id, "completed")).output, "At last.");
});

test("run canceled while its worker is frozen: the next worker ends it once", inFullRun, async () => {
  const workflowId = await createWorkflow(author, {
    steps: [promptOpenai("one", "1"), promptOpenai("two", "2", { needs: ["one"] })],
  });
  provider.next({ answer: {} });
  provider.next("hang");
  const before = provider.requests.length;
  const worker = await startWorkerProcess();
  const id = await startExecution(author, workflowId, { apiKeys: { openai }, webhookUrl });
  await becomes(
    async () => promptsSince(before),
    (prompts) => prompts.length === 2,
  );
  worker.child.kill("SIGSTOP");
  await market.query("update executions set cancel_requested_at = $2 where id = $1", [
    toUuid("exec", id),
    market.clock.now,
  ]);
  await killWorker(worker);
  await untilStatus(author, id, "canceled");
  assert.deepEqual(await callbacksOf(id), ["execution.canceled"]);
  assert.equal(promptsSince(before).length, 2);
});

test("step or run that ended several processes: fails without another call", async () => {
  const workflowId = await createWorkflow(author, { steps: [promptOpenai("bad", "x")] });
  const id = await startExecution(author, workflowId, { apiKeys: { openai }, webhookUrl });
  await market.query(
    "insert into execution_steps (execution_id, step_id, item, n, type, status, attempt, retries, repeats) values ($1, 'bad', -1, 1, 'prompt', 'running', 1, 0, 3)",
    [toUuid("exec", id)],
  );
  const before = provider.requests.length;
  survivor = startWorker(market);
  assert.equal(
    (await untilStatus(author, id, "failed")).error.message,
    "Step bad: Several processes ended while they ran this step.",
  );
  await survivor.stop();
  survivor = null;
  const other = await startExecution(author, workflowId, { apiKeys: { openai }, webhookUrl });
  await market.query("update workflow_runs set leases = 5 where execution_id = $1", [toUuid("exec", other)]);
  survivor = startWorker(market);
  assert.equal((await untilStatus(author, other, "failed")).error.code, "INTERNAL_ERROR");
  assert.deepEqual(await callbacksOf(other), ["execution.failed"]);
  assert.equal(promptsSince(before).length, 0);
});

test("backend killed while a checkpoint waits: the answer is written and no call is repeated", async () => {
  const blocked = await startBlockedProvider();
  const local = await createProviderKey(author, { provider: "ollama", baseUrl: blocked.url });
  const workflowId = await createWorkflow(author, {
    steps: [promptOpenai("one", "1"), promptOpenai("two", "2", { needs: ["one"] })],
    result: "steps.two.output",
  });
  const locker = new pg.Client({ connectionString: market.target });
  await locker.connect();
  survivor = startWorker(market);
  const id = await startExecution(author, workflowId, { apiKeys: { openai: local } });
  await blocked.arrivals(1);
  await locker.query("begin");
  await locker.query("select from workflow_runs where execution_id = $1 for update", [toUuid("exec", id)]);
  blocked.answer();
  // The renewal of the lease and the checkpoint with the answer wait for the lock.
  await waitForBlockedStatements(market, 2);
  await locker.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
  );
  await locker.query("commit");
  await locker.end();
  // A read may get the ended connection and return 503.
  await becomes(
    () => author.get(`/v1/ai/executions/${id}`),
    ({ body }) => body.data?.status === "completed",
  );
  assert.equal(blocked.arrived(), 2);
  for (const step of await stepsOf(author, id))
    assert.deepEqual([step.possiblyRepeated, step.attempt], [false, 1]);
  await blocked.close();
});
