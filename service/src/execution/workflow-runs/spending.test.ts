import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { assertError } from "../../../test/market.ts";
import {
  createWorkflow,
  echoStep,
  executeWorkflow,
  openWorkflows,
  postExecution,
  promptStep,
  startExecution,
  stepOf,
  untilStatus,
} from "../../../test/workflows.ts";
import { CostLimit } from "./cost-limit.ts";

const { provider, market, author, withOpenai } = await openWorkflows();

/** gpt-4o: 2.5 USD for a million tokens that go in, and 10 for one that comes out. */
const model = "gpt-4o";
const usage = { input: 1_000, output: 100 };
const COST_USD = 0.0035;

suite("what a call that failed has used", () => {
  test("counts for its step and its run where the provider told it, with all attempts", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [promptStep("a", "x", { model, retry: { max: 1, backoffSeconds: 0 }, onError: "continue" })],
    });
    const filtered = { answer: { text: "", stop: "filter", usage } } as const;
    for (let call = 0; call < 2; call++) provider.next(filtered);
    const run = await executeWorkflow(author, workflowId, withOpenai());
    const step = await stepOf(author, run.executionId, "a");
    assert.deepEqual([step.error.code, step.attempt, step.provider], ["CONTENT_FILTERED", 2, "openai"]);
    for (const told of [step.usage, run.usage])
      assert.deepEqual([told.totalTokens, told.estimatedCost, told.costKnown], [2_200, 2 * COST_USD, true]);
  });

  test("counts with the call before it, which it was to mend", async () => {
    const output = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
    const workflowId = await createWorkflow(author, { steps: [promptStep("a", "x", { model, output })] });
    provider.next({ answer: { text: "no JSON", usage } });
    provider.next("bad-key");
    const run = await executeWorkflow(author, workflowId, withOpenai());
    assert.deepEqual([run.status, run.error.code], ["failed", "PROVIDER_KEY_INVALID"]);
    assert.deepEqual([run.usage.totalTokens, run.usage.estimatedCost], [1_100, COST_USD]);
  });

  test("counts at least its prompt where the step gave it up, and the call after it", async () => {
    const step = promptStep("a", "x".repeat(4_000), {
      model,
      timeoutSeconds: 5,
      retry: { max: 1, backoffSeconds: 0 },
    });
    const workflowId = await createWorkflow(author, { steps: [step] });
    provider.next("hang");
    const arrival = provider.nextRequest();
    const id = await startExecution(author, workflowId, withOpenai());
    await arrival;
    provider.next({ answer: { usage } });
    market.clock.forward(6_000);
    const run = await untilStatus(author, id, "completed");
    const { promptTokens, estimatedCost, estimated, costKnown } = run.usage;
    assert.deepEqual(
      [promptTokens, estimatedCost, estimated, costKnown],
      [2_000, 0.0025 + COST_USD, true, true],
    );
  });

  test("counts at least the prompt of what was under way when its run was canceled", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [promptStep("a", "x".repeat(4_000), { model })],
    });
    provider.next("hang");
    const arrival = provider.nextRequest();
    const id = await startExecution(author, workflowId, withOpenai());
    await arrival;
    await author.post(`/v1/ai/executions/${id}/cancel`);
    const { usage } = await untilStatus(author, id, "canceled");
    assert.deepEqual([usage.promptTokens, usage.estimatedCost, usage.estimated], [1_000, 0.0025, true]);
  });

  test("is nothing where the provider told nothing", async () => {
    const workflowId = await createWorkflow(author, { steps: [promptStep("a", "x"), echoStep("b", "y")] });
    provider.next("bad-key");
    const run = await executeWorkflow(author, workflowId, {
      apiKeys: { ...withOpenai().apiKeys, sandbox: "sandbox" },
    });
    assert.equal((await stepOf(author, run.executionId, "a")).usage, null);
  });
});

suite("a run with maxCost", () => {
  const costs = (id: string, more: object = {}) =>
    promptStep(id, "x", { model, options: { maxTokens: 100 }, ...more });
  const after = (...needs: string[]) => ({ needs });

  test("calls nothing that would pass it, and fails, even where its steps may", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [costs("a"), costs("b", { ...after("a"), onError: "continue" }), costs("c", after("b"))],
    });
    const before = provider.requests.length;
    provider.next({ answer: { usage } });
    const run = await executeWorkflow(author, workflowId, {
      ...withOpenai(),
      options: { maxCost: COST_USD + 0.0009 },
    });
    assert.deepEqual([run.status, run.error.code], ["failed", "VALIDATION_ERROR"]);
    assert.match(run.error.message, /options\.maxCost/);
    assert.equal(run.usage.estimatedCost, COST_USD);
    assert.equal(provider.requests.length - before, 1);
    assert.equal((await stepOf(author, run.executionId, "b")).attempt, 1);
    const retried = await author.post(`/v1/ai/executions/${run.executionId}/retry`, undefined, {
      prefer: "wait=30",
    });
    assert.equal(retried.body.data.status, "failed", "what it spent before counts");
    assert.equal(provider.requests.length - before, 1);
  });

  test("comes to its end where all its calls are within it", async () => {
    const workflowId = await createWorkflow(author, { steps: [costs("a"), costs("b", after("a"))] });
    for (let call = 0; call < 2; call++) provider.next({ answer: { usage } });
    const run = await executeWorkflow(author, workflowId, {
      ...withOpenai(),
      options: { maxCost: 2 * COST_USD },
    });
    assert.equal(run.status, "completed");
  });

  test("counts calls that are under way by what they are expected to cost, and those that have ended by what they did", () => {
    const limit = new CostLimit(0.0025, 0);
    const messages = [{ role: "user", content: "" }] as const;
    const reserve = () =>
      limit.reserve({
        provider: "openai",
        model,
        messages,
        options: { maxTokens: 100 },
        at: new Date("2026-06-15"),
      });
    const [first, second] = [reserve(), reserve()];
    assert.deepEqual([first, second, limit.left], [0.001, 0.001, 0.0005]);
    assert.throws(reserve, { code: "VALIDATION_ERROR" });
    assert.equal(limit.refusal?.code, "VALIDATION_ERROR");
    limit.spend(0.0001);
    limit.release(first);
    assert.equal(reserve(), 0.001);
    assert.equal(limit.left, 0.0004);
  });

  test("gives a workflow that it runs what is left", async () => {
    const productId = await createWorkflow(author, { steps: [costs("a")] });
    const workflowId = await createWorkflow(author, {
      steps: [costs("first"), { id: "other", type: "product", productId, ...after("first") }],
    });
    const before = provider.requests.length;
    provider.next({ answer: { usage } });
    const run = await executeWorkflow(author, workflowId, {
      ...withOpenai(),
      options: { maxCost: COST_USD + 0.0009 },
    });
    assert.deepEqual([run.status, run.error.code], ["failed", "VALIDATION_ERROR"]);
    assert.equal(provider.requests.length - before, 1);
  });

  test("calls nothing whose price nobody knows", async () => {
    const workflowId = await createWorkflow(author, { steps: [costs("a", { model: "no-such-model" })] });
    const before = provider.requests.length;
    const run = await executeWorkflow(author, workflowId, { ...withOpenai(), options: { maxCost: 5 } });
    assert.deepEqual([run.status, run.error.code], ["failed", "VALIDATION_ERROR"]);
    assert.equal(provider.requests.length, before);
  });

  test("is a positive number of dollars", async () => {
    const workflowId = await createWorkflow(author, { steps: [costs("a")] });
    for (const maxCost of [0, -1, "1"])
      assertError(
        await postExecution(author, workflowId, { options: { maxCost } }),
        400,
        "INVALID_REQUEST",
        "options.maxCost",
      );
  });
});
