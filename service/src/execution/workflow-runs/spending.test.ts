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

/** gpt-4o: 2.5 USD for a million input tokens, 10 USD for a million output tokens. */
const model = "gpt-4o";
const usage = { input: 1_000, output: 100 };
const COST_USD = 0.0035;

suite("usage of failed calls", () => {
  test("reported by the provider: counts for the step and the run, over all attempts", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [promptStep("a", "x", { model, retry: { max: 1, backoffSeconds: 0 }, onError: "continue" })],
    });
    const filtered = { answer: { text: "", stop: "filter", usage } } as const;
    for (let call = 0; call < 2; call++) provider.next(filtered);
    const run = await executeWorkflow(author, workflowId, withOpenai());
    const step = await stepOf(author, run.executionId, "a");
    assert.deepEqual([step.error.code, step.attempt, step.provider], ["CONTENT_FILTERED", 2, "openai"]);
    for (const total of [step.usage, run.usage])
      assert.deepEqual(
        [total.totalTokens, total.estimatedCost, total.costKnown],
        [2_200, 2 * COST_USD, true],
      );
  });

  test("failed repair call: the usage of the first call still counts", async () => {
    const output = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
    const workflowId = await createWorkflow(author, { steps: [promptStep("a", "x", { model, output })] });
    provider.next({ answer: { text: "no JSON", usage } });
    provider.next("bad-key");
    const run = await executeWorkflow(author, workflowId, withOpenai());
    assert.deepEqual([run.status, run.error.code], ["failed", "PROVIDER_KEY_INVALID"]);
    assert.deepEqual([run.usage.totalTokens, run.usage.estimatedCost], [1_100, COST_USD]);
  });

  test("timed out call: counts at least its prompt, and the retry adds its own usage", async () => {
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

  test("call aborted by a cancellation: counts at least its prompt", async () => {
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

  test("not reported: is null", async () => {
    const workflowId = await createWorkflow(author, { steps: [promptStep("a", "x"), echoStep("b", "y")] });
    provider.next("bad-key");
    const run = await executeWorkflow(author, workflowId, {
      apiKeys: { ...withOpenai().apiKeys, sandbox: "sandbox" },
    });
    assert.equal((await stepOf(author, run.executionId, "a")).usage, null);
  });
});

suite("workflow run with maxCost", () => {
  const paidStep = (id: string, more: object = {}) =>
    promptStep(id, "x", { model, options: { maxTokens: 100 }, ...more });
  const after = (...needs: string[]) => ({ needs });

  test("call over the limit: is not made, and the run fails despite onError and a retry", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [
        paidStep("a"),
        paidStep("b", { ...after("a"), onError: "continue" }),
        paidStep("c", after("b")),
      ],
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
    assert.equal(retried.body.data.status, "failed", "the cost before the retry counts");
    assert.equal(provider.requests.length - before, 1);
  });

  test("all calls within the limit: completes", async () => {
    const workflowId = await createWorkflow(author, { steps: [paidStep("a"), paidStep("b", after("a"))] });
    for (let call = 0; call < 2; call++) provider.next({ answer: { usage } });
    const run = await executeWorkflow(author, workflowId, {
      ...withOpenai(),
      options: { maxCost: 2 * COST_USD },
    });
    assert.equal(run.status, "completed");
  });

  test("open calls count by their expected cost, ended calls by their real cost", () => {
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

  test("child workflow: gets the remaining limit", async () => {
    const productId = await createWorkflow(author, { steps: [paidStep("a")] });
    const workflowId = await createWorkflow(author, {
      steps: [paidStep("first"), { id: "other", type: "product", productId, ...after("first") }],
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

  test("model without a known price: is not called", async () => {
    const workflowId = await createWorkflow(author, { steps: [paidStep("a", { model: "no-such-model" })] });
    const before = provider.requests.length;
    const run = await executeWorkflow(author, workflowId, { ...withOpenai(), options: { maxCost: 5 } });
    assert.deepEqual([run.status, run.error.code], ["failed", "VALIDATION_ERROR"]);
    assert.equal(provider.requests.length, before);
  });

  test("zero, negative or no number: 400", async () => {
    const workflowId = await createWorkflow(author, { steps: [paidStep("a")] });
    for (const maxCost of [0, -1, "1"])
      assertError(
        await postExecution(author, workflowId, { options: { maxCost } }),
        400,
        "INVALID_REQUEST",
        "options.maxCost",
      );
  });
});
