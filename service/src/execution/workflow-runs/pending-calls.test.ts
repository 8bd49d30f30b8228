import assert from "node:assert/strict";
import { beforeEach, suite, type TestContext, test } from "node:test";
import { buyProduct, createProduct, refundEverything } from "../../../test/factories.ts";
import { callTogether } from "../../../test/held-calls.ts";
import { assertError, type Client } from "../../../test/market.ts";
import { GOOD_KEY } from "../../../test/provider-server.ts";
import { createProviderKey, startBlockedProvider } from "../../../test/runs.ts";
import { statementsOfProcess } from "../../../test/statements.ts";
import { becomes } from "../../../test/until.ts";
import {
  createWorkflow,
  definitionOf,
  executeWorkflow,
  openWorkflows,
  postExecution,
  promptStep,
  startExecution,
  stepsOf,
  transformStep,
  untilStatus,
} from "../../../test/workflows.ts";
import { toUuid } from "../../core/ids.ts";

const { provider, market, author, withOpenai } = await openWorkflows();

const model = "gpt-4o";
/** gpt-4o: 2.5 USD for a million input tokens, 10 USD for a million output tokens. */
const usage = { input: 1_000, output: 100 };
const COST_USD = 0.0035;
/** The places of a worker. */
const MAX_RUNS = 100;
const STEPS = ["one", "two", "three"];
const chainSteps = (more: object = {}) =>
  STEPS.map((id, at) => promptStep(id, id, { model, needs: STEPS.slice(Math.max(0, at - 1), at), ...more }));

async function startBlocked(t: TestContext) {
  const blocked = await startBlockedProvider();
  t.after(blocked.close);
  return blocked;
}

async function callsWith(keyId: string) {
  const { rows } = await market.query(
    "select ended_at is not null as ended, cost_usd::float8 as cost from provider_calls where provider_key_id = $1 order by id",
    [toUuid("pkey", keyId)],
  );
  return rows;
}

/** The first one confirms what the process remembers, and inserts the run with its first step. The request answers what the last one returned. */
const STATEMENTS = ["start_runs", "write_checkpoint", "write_checkpoint", "write_checkpoint_and_end"];
/** Sent by the worker at intervals. */
const POLLS = new Set(["claim_runs", "list_run_workers"]);

test("three steps in a row, repeated: four statements, which write the checkpoints and the calls of the key", async () => {
  const workflowId = await createWorkflow(author, { steps: chainSteps() });
  const request = withOpenai();
  await executeWorkflow(author, workflowId, request);
  const before = await callsWith(request.apiKeys.openai);
  // On a busy machine a call may take longer than a checkpoint waits for its end: then another checkpoint is written.
  const attempts: string[][] = [];
  while (attempts.length < 20 && attempts.at(-1)?.length !== STATEMENTS.length) {
    const texts = await statementsOfProcess(() => executeWorkflow(author, workflowId, request));
    const names = texts.flatMap((text) => /^-- prepared: (\w+)/.exec(text)?.[1] ?? []);
    attempts.push(
      names.filter((name) => /checkpoint|call|product|provider|run|execution/.test(name) && !POLLS.has(name)),
    );
  }
  assert.deepEqual(attempts.at(-1), STATEMENTS);
  const calls = (await callsWith(request.apiKeys.openai)).slice(before.length);
  assert.deepEqual(
    calls.map(({ ended }) => ended),
    attempts.flatMap(() => [true, true, true]),
  );
});

test("key with maxConcurrency 1: runs one step after another, and a repair call too", async () => {
  const openai = await createProviderKey(author, { maxConcurrency: 1, monthlyBudget: 5 });
  const output = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  const workflowId = await createWorkflow(author, { steps: chainSteps({ output }) });
  for (const text of ["no JSON", '{"n":1}', '{"n":2}', "[]", '{"n":3}'])
    provider.next({ answer: { text, usage } });
  const run = await executeWorkflow(author, workflowId, { apiKeys: { openai } });
  assert.equal(run.status, "completed");
  assert.deepEqual(
    (await callsWith(openai)).map(({ cost }) => cost),
    Array(5).fill(COST_USD),
  );
});

test("map with more items than the key's maxConcurrency: waits, and then calls every item", async () => {
  const openai = await createProviderKey(author, { maxConcurrency: 2 });
  const item = { ...promptStep("", "x", { model }), id: undefined };
  const map = { id: "all", type: "map", items: "[1, 2, 3, 4, 5, 6]", maxConcurrency: 6, do: item };
  const workflowId = await createWorkflow(author, { steps: [map], result: "size(steps.all.output)" });
  const id = await startExecution(author, workflowId, { apiKeys: { openai } });
  const areAllCompleted = async () => {
    const items = (await stepsOf(author, id)).filter(({ index }: { index: number | null }) => index !== null);
    const are = (...all: string[]) => items.every(({ status }: { status: string }) => all.includes(status));
    // Items that were refused by the concurrency limit retry by the clock, when all others have ended.
    if (items.length === 6 && are("completed", "waiting")) market.clock.forward(2_001);
    return items.length === 6 && are("completed");
  };
  await becomes(areAllCompleted, Boolean);
  assert.equal((await untilStatus(author, id, "completed")).output, 6);
  assert.equal((await callsWith(openai)).length, 6);
});

test("provider key changed during a run: the next step uses the new base URL", async (t) => {
  const [blocked, other] = await Promise.all([startBlocked(t), startBlocked(t)]);
  other.answer();
  const ollama = await createProviderKey(author, { provider: "ollama", baseUrl: blocked.url });
  const workflowId = await createWorkflow(author, { steps: chainSteps() });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: ollama } });
  await blocked.arrivals(1);
  const changed = await author.patch(`/v1/ai/keys/${ollama}`, { baseUrl: other.url, key: GOOD_KEY });
  assert.equal(changed.status, 200, changed.text);
  blocked.answer();
  await untilStatus(author, id, "completed");
  assert.deepEqual([blocked.arrived(), other.arrived()], [1, 2]);
  assert.deepEqual(
    (await callsWith(ollama)).map(({ ended }) => ended),
    [true, true, true],
  );
});

test("provider key refused and then accepted during a run: its status is valid", async () => {
  const openai = await createProviderKey(author);
  const [refused, ...others] = chainSteps();
  const workflowId = await createWorkflow(author, {
    steps: [{ ...refused, onError: "continue" }, ...others],
  });
  provider.next("bad-key");
  const run = await executeWorkflow(author, workflowId, { apiKeys: { openai } });
  assert.equal(run.status, "completed");
  const { rows } = await market.query("select status from provider_keys where id = $1", [
    toUuid("pkey", openai),
  ]);
  assert.equal(rows[0].status, "valid");
});

test("provider key deleted during a run: the next step fails without a call", async (t) => {
  const blocked = await startBlocked(t);
  const ollama = await createProviderKey(author, { provider: "ollama", baseUrl: blocked.url });
  const workflowId = await createWorkflow(author, { steps: chainSteps() });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: ollama } });
  await blocked.arrivals(1);
  assert.equal((await author.delete(`/v1/ai/keys/${ollama}`)).status, 200);
  blocked.answer();
  assert.equal((await untilStatus(author, id, "failed")).error.code, "PROVIDER_KEY_NOT_FOUND");
  assert.equal(blocked.arrived(), 1);
});

test("call aborted with its run: its reservation of the key is released", async (t) => {
  const blocked = await startBlocked(t);
  const ollama = await createProviderKey(author, {
    provider: "ollama",
    baseUrl: blocked.url,
    maxConcurrency: 1,
  });
  const workflowId = await createWorkflow(author, { steps: chainSteps() });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: ollama } });
  await blocked.arrivals(1);
  assert.equal((await author.post(`/v1/ai/executions/${id}/cancel`)).status, 200);
  await untilStatus(author, id, "canceled");
  await becomes(
    () => callsWith(ollama),
    (calls) => calls.length === 1 && calls.every(({ ended }) => ended),
  );
  blocked.answer();
});

/** All rows of a run, without what differs between equal runs. */
async function rowsOf(id: string) {
  const { rows } = await market.query(
    `select to_jsonb(e) - '{id,created_at,completed_at,duration_ms,sealed_texts,product_id}'::text[] as execution, e.sealed_texts is null as "hasNoTexts",
            to_jsonb(r) - '{execution_id,sealed_start,due_at}'::text[] || jsonb_build_object('due', due_at is not null) as run,
            (select jsonb_agg(to_jsonb(s) - '{execution_id,sealed_output,started_at,ended_at,due_at}'::text[] || jsonb_build_object('ended', ended_at is not null, 'output', sealed_output is not null) order by n)
               from execution_steps s where s.execution_id = e.id) as steps,
            (select jsonb_agg(to_jsonb(v) - '{execution_id,created_at}'::text[] order by seq) from execution_events v where v.execution_id = e.id) as events,
            (select jsonb_agg(to_jsonb(c) - '{id,execution_id,started_at,lease_until,ended_at}'::text[] || jsonb_build_object('ended', ended_at is not null) order by id)
               from provider_calls c where c.execution_id = e.id) as calls
       from executions e join workflow_runs r on r.execution_id = e.id where e.id = $1`,
    [toUuid("exec", id)],
  );
  return rows[0];
}

/** As a request that cancels the run, but without a notification: the next checkpoint finds it out. */
const requestCancel = (id: string) =>
  market.query(
    `with e as (update executions set cancel_requested_at = now() where id = $1 returning id)
     update workflow_runs r set signals = signals + 1 from e where r.execution_id = e.id`,
    [toUuid("exec", id)],
  );

test("parallel runs: share the statements of their starts and checkpoints, write what one run writes alone, and a canceled one ends", async (t) => {
  const blocked = await startBlocked(t);
  const ollama = await createProviderKey(author, { provider: "ollama", baseUrl: blocked.url });
  const request = { apiKeys: { openai: ollama } };
  const workflowId = await createWorkflow(author, { steps: chainSteps(), result: "steps.three.output" });
  const start = (count: number) =>
    Promise.all(Array.from({ length: count }, () => startExecution(author, workflowId, request)));
  const [read] = await start(1);
  const { checkpointWriter } = market.service.ctx;
  let ids: string[] = [];
  const startTexts = await statementsOfProcess(async () => {
    callTogether(t, checkpointWriter, "start", 12);
    ids = await start(12);
  });
  assert.ok(startTexts.filter((text) => text.startsWith("-- prepared: start_runs\n")).length < 12);
  await blocked.arrivals(1 + ids.length);
  await requestCancel(ids[5]!);
  const texts = await statementsOfProcess(async () => {
    // The canceled one may have ended already, when its lease was renewed.
    callTogether(t, checkpointWriter, "write", ids.length);
    blocked.answer();
    await Promise.all(ids.map((id, at) => untilStatus(author, id, at === 5 ? "canceled" : "completed")));
  });
  assert.ok(texts.some((text) => text.startsWith("-- prepared: write_checkpoints\n")));
  assert.equal((await callsWith(ollama)).filter(({ ended }) => !ended).length, 0);
  await untilStatus(author, read!, "completed");
  const expected = await rowsOf(read!);
  for (const [at, id] of ids.entries()) if (at !== 5) assert.deepEqual(await rowsOf(id), expected);
  assert.ok(
    !market.logs.some((line) => line.includes("PostgreSQL refused")),
    market.logs.filter((line) => line.includes("PostgreSQL refused")).join(""),
  );
});

suite("a change between two runs of a remembered workflow: the next run has it", () => {
  let buyer: Client;
  let workflowId: string;
  let apiKeys: Record<string, string>;
  const step = (text: string, more: object = {}) => promptStep("one", text, { model, ...more });
  const contentOf = (text: string) => definitionOf({ steps: [step(text)], result: "steps.one.output" });
  const run = () => postExecution(buyer, workflowId, { apiKeys });
  beforeEach(async () => {
    buyer = await market.createUser({ name: "Buyer" });
    workflowId = await createProduct(author, { type: "WORKFLOW", content: contentOf("old") });
    await buyProduct(buyer, workflowId);
    apiKeys = { openai: await createProviderKey(buyer) };
    // The first run records the first use, and the first one with the key changes its status.
    for (let n = 0; n < 3; n++) await executeWorkflow(buyer, workflowId, { apiKeys });
    const texts = await statementsOfProcess(() => executeWorkflow(buyer, workflowId, { apiKeys }));
    assert.ok(texts.some((text) => text.startsWith("-- prepared: start_runs\n")));
  });

  test("new version: its steps", async () => {
    const changed = await author.patch(`/v1/products/${workflowId}`, { content: contentOf("new") });
    assert.equal(changed.status, 200, changed.text);
    const before = provider.requests.length;
    assert.equal((await executeWorkflow(buyer, workflowId, { apiKeys })).productVersion, "1.1.0");
    const [sent] = provider.requests.slice(before);
    assert.equal((sent!.body as { messages: { content: string }[] }).messages[0]!.content, "new");
  });

  test("refund: 403", async () => {
    await refundEverything(market, buyer);
    assertError(await run(), 403, "UNAUTHORIZED");
  });

  test("deleted key: 422; new secret of the key: is used", async () => {
    const [key] = Object.values(apiKeys);
    await buyer.patch(`/v1/ai/keys/${key}`, { key: "sk-another-key" });
    assert.equal((await executeWorkflow(buyer, workflowId, { apiKeys })).error.code, "PROVIDER_KEY_INVALID");
    await buyer.delete(`/v1/ai/keys/${key}`);
    assertError(await run(), 422, "VALIDATION_ERROR", "apiKeys.openai");
  });

  test("limits on the key: are enforced", async () => {
    const [key] = Object.values(apiKeys);
    const changed = await buyer.patch(`/v1/ai/keys/${key}`, { monthlyBudget: 0.01 });
    assert.equal(changed.status, 200, changed.text);
    provider.next({ answer: { usage: { input: 10_000, output: 100 } } });
    for (const code of [undefined, "KEY_BUDGET_EXCEEDED", "KEY_BUDGET_EXCEEDED"])
      assert.equal((await executeWorkflow(buyer, workflowId, { apiKeys })).error?.code, code);
  });

  test("input that the workflow refuses, and another version: as at the first run", async () => {
    const refused = await postExecution(buyer, workflowId, { apiKeys: {} });
    assertError(refused, 422, "VALIDATION_ERROR", "apiKeys.openai");
    const unknown = await postExecution(buyer, workflowId, { apiKeys, options: { version: "7.0.0" } });
    assertError(unknown, 422, "VALIDATION_ERROR", "options.version");
  });
});

test("requests that fail before their runs are inserted: give the places of the worker back", async (t) => {
  const workflowId = await createWorkflow(author, { steps: [promptStep("one", "x", { model })] });
  await executeWorkflow(author, workflowId, withOpenai());
  const { mock } = t.mock.method(market.service.ctx.vault, "seal", () => {
    throw new Error("out of memory");
  });
  // An account gets half of the places at most.
  for (let n = 0; n <= MAX_RUNS / 2; n++)
    assert.equal((await postExecution(author, workflowId, withOpenai())).status, 500);
  mock.restore();
  const texts = await statementsOfProcess(() => executeWorkflow(author, workflowId, withOpenai()));
  assert.ok(texts.some((text) => text.startsWith("-- prepared: start_runs\n")));
});

/** What a run writes must not depend on whether its workflow was read or remembered. */
test("remembered workflow of any kind of step: writes the same as one that was read", async () => {
  const approval = { id: "ok", type: "approval", timeoutSeconds: 60 };
  const map = {
    id: "all",
    type: "map",
    maxConcurrency: 1,
    items: "[1, 2]",
    do: { ...promptStep("", "x", { model }), id: undefined },
  };
  const workflows: { steps: object[]; status?: string }[] = [
    { steps: chainSteps() },
    { steps: [transformStep("a", "1 + 1"), transformStep("b", "steps.a.output + 1", { needs: ["a"] })] },
    { steps: [transformStep("a", "1 + 1"), ...chainSteps({ when: "1 < 2" })] },
    { steps: chainSteps({ when: "1 > 2" }) },
    { steps: [transformStep("a", "1 / 0")], status: "failed" },
    { steps: [map] },
    { steps: [approval, promptStep("late", "x", { model, needs: ["ok"] })], status: "waiting" },
    { steps: [{ id: "pause", type: "delay", seconds: 60 }], status: "waiting" },
  ];
  for (const { steps, status = "completed" } of workflows) {
    const workflowId = await createWorkflow(author, { steps });
    const rows: unknown[] = [];
    for (let n = 0; n < 2; n++) {
      const id = await startExecution(author, workflowId, withOpenai());
      await untilStatus(author, id, status);
      rows.push(await rowsOf(id));
    }
    assert.deepEqual(rows[1], rows[0], JSON.stringify(steps));
  }
});
