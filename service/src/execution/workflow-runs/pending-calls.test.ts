import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GOOD_KEY } from "../../../test/provider-server.ts";
import { createProviderKey, startBlockedProvider } from "../../../test/runs.ts";
import { statementsOf } from "../../../test/statements.ts";
import { becomes } from "../../../test/until.ts";
import {
  createWorkflow,
  executeWorkflow,
  openWorkflows,
  promptStep,
  startExecution,
  stepsOf,
  untilStatus,
} from "../../../test/workflows.ts";
import { toUuid } from "../../core/ids.ts";

const { provider, market, author, withOpenai } = await openWorkflows();

const model = "gpt-4o";
/** At gpt-4o's 2.5 USD for a million tokens that go in, and 10 for one that comes out. */
const usage = { input: 1_000, output: 100 };
const COST_USD = 0.0035;
const STEPS = ["one", "two", "three"];
const inARow = (more: object = {}) =>
  STEPS.map((id, at) => promptStep(id, id, { model, needs: STEPS.slice(Math.max(0, at - 1), at), ...more }));

async function holds(t: TestContext) {
  const held = await startBlockedProvider();
  t.after(held.close);
  return held;
}

async function callsWith(keyId: string) {
  const { rows } = await market.query(
    "select ended_at is not null as ended, cost_usd::float8 as cost from provider_calls where provider_key_id = $1 order by id",
    [toUuid("pkey", keyId)],
  );
  return rows;
}

test("three steps in a row are written down in four statements, with what their calls took of the key", async () => {
  const workflowId = await createWorkflow(author, { steps: inARow() });
  const wish = withOpenai();
  await executeWorkflow(author, workflowId, wish);
  const before = await callsWith(wish.apiKeys.openai);
  const texts = await statementsOf(() => executeWorkflow(author, workflowId, wish));
  const names = texts.flatMap((text) => /^-- prepared: (\w+)/.exec(text)?.[1] ?? []);
  assert.deepEqual(
    names.filter((name) => /checkpoint|call|provider/.test(name)),
    [
      ...["find_provider_key", "find_provider_key"],
      ...["write_checkpoint_and_move", "write_checkpoint", "write_checkpoint", "write_checkpoint_and_move"],
    ],
    "the request and the run read the key; then steps begin and end",
  );
  const calls = (await callsWith(wish.apiKeys.openai)).slice(before.length);
  assert.deepEqual(
    calls.map(({ ended }) => ended),
    [true, true, true],
  );
});

test("a key that takes one call at a time takes step after step, also one that mends its answer", async () => {
  const openai = await createProviderKey(author, { maxConcurrency: 1, monthlyBudget: 5 });
  const output = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
  const workflowId = await createWorkflow(author, { steps: inARow({ output }) });
  for (const text of ["no JSON", '{"n":1}', '{"n":2}', "[]", '{"n":3}'])
    provider.next({ answer: { text, usage } });
  const run = await executeWorkflow(author, workflowId, { apiKeys: { openai } });
  assert.equal(run.status, "completed");
  assert.deepEqual(
    (await callsWith(openai)).map(({ cost }) => cost),
    Array(5).fill(COST_USD),
  );
});

test("items of a map take no more of their key than it gives, and are all called in the end", async () => {
  const openai = await createProviderKey(author, { maxConcurrency: 2 });
  const item = { ...promptStep("", "x", { model }), id: undefined };
  const map = { id: "all", type: "map", items: "[1, 2, 3, 4, 5, 6]", maxConcurrency: 6, do: item };
  const workflowId = await createWorkflow(author, { steps: [map], result: "size(steps.all.output)" });
  const id = await startExecution(author, workflowId, { apiKeys: { openai } });
  const isOver = async () => {
    const items = (await stepsOf(author, id)).filter(({ index }: { index: number | null }) => index !== null);
    const are = (...all: string[]) => items.every(({ status }: { status: string }) => all.includes(status));
    // What its key had no room for is tried again by the clock, when all others have ended.
    if (items.length === 6 && are("completed", "waiting")) market.clock.forward(2_001);
    return items.length === 6 && are("completed");
  };
  await becomes(isOver, (over) => over);
  assert.equal((await untilStatus(author, id, "completed")).output, 6);
  assert.equal((await callsWith(openai)).length, 6);
});

test("a key that is changed while a run goes on is used as it is then", async (t) => {
  const [held, other] = await Promise.all([holds(t), holds(t)]);
  other.answer();
  const ollama = await createProviderKey(author, { provider: "ollama", baseUrl: held.url });
  const workflowId = await createWorkflow(author, { steps: inARow() });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: ollama } });
  await held.arrivals(1);
  const changed = await author.patch(`/v1/ai/keys/${ollama}`, { baseUrl: other.url, key: GOOD_KEY });
  assert.equal(changed.status, 200, changed.text);
  held.answer();
  await untilStatus(author, id, "completed");
  assert.deepEqual([held.arrived(), other.arrived()], [1, 2]);
  assert.deepEqual(
    (await callsWith(ollama)).map(({ ended }) => ended),
    [true, true, true],
  );
});

test("a key that was refused and then works is valid, within a run too", async () => {
  const openai = await createProviderKey(author);
  const [refused, ...others] = inARow();
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

test("a key that is removed while a run goes on is called no more", async (t) => {
  const held = await holds(t);
  const ollama = await createProviderKey(author, { provider: "ollama", baseUrl: held.url });
  const workflowId = await createWorkflow(author, { steps: inARow() });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: ollama } });
  await held.arrivals(1);
  assert.equal((await author.delete(`/v1/ai/keys/${ollama}`)).status, 200);
  held.answer();
  assert.equal((await untilStatus(author, id, "failed")).error.code, "PROVIDER_KEY_NOT_FOUND");
  assert.equal(held.arrived(), 1);
});

test("a call that is broken off with its run gives back what it took of its key", async (t) => {
  const held = await holds(t);
  const ollama = await createProviderKey(author, {
    provider: "ollama",
    baseUrl: held.url,
    maxConcurrency: 1,
  });
  const workflowId = await createWorkflow(author, { steps: inARow() });
  const id = await startExecution(author, workflowId, { apiKeys: { openai: ollama } });
  await held.arrivals(1);
  assert.equal((await author.post(`/v1/ai/executions/${id}/cancel`)).status, 200);
  await untilStatus(author, id, "canceled");
  await becomes(
    () => callsWith(ollama),
    (calls) => calls.length === 1 && calls.every(({ ended }) => ended),
  );
  held.answer();
});
