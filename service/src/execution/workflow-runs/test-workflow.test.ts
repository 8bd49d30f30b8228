import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { assertError } from "../../../test/market.ts";
import {
  createWorkflow,
  definitionOf,
  echoStep,
  executeWorkflow,
  openWorkflows,
  promptStep,
  startExecution,
  stepsOf,
  transformStep,
  untilStatus,
} from "../../../test/workflows.ts";

const { market, author } = await openWorkflows();

const SAVED = {
  input: { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] },
  steps: [
    echoStep("outline", "On {{topic}}", { vars: { topic: "input.topic" } }),
    transformStep("parts", "[steps.outline.output, 'two']", { needs: ["outline"] }),
    {
      ...{ id: "drafts", type: "map", needs: ["parts"], items: "steps.parts.output" },
      do: { type: "transform", value: "item + string(index)" },
    },
  ],
  result: "steps.drafts.output",
};
const workflowId = await createWorkflow(author, SAVED);

const check = (caller: typeof author, body: object) => caller.post("/v1/ai/workflows/check", body);
const start = (caller: typeof author, body: object) =>
  caller.post(`/v1/ai/workflows/${workflowId}/test`, { apiKeys: { sandbox: "sandbox" }, ...body }, WAIT);
const WAIT = { prefer: "wait=30" };

suite("POST /ai/workflows/check", () => {
  test("a definition in any state: all problems with their places, and nothing is saved", async () => {
    const content = definitionOf({
      ...SAVED,
      steps: [...SAVED.steps.slice(1), { id: "end", type: "delay", seconds: 0 }],
    });
    const { status, body } = await check(author, { content });
    assert.equal(status, 200);
    assert.deepEqual(body.data.problems, [
      { field: "content.steps[0].value", reason: "uses steps.outline, but no step has this id" },
      { field: "content.steps[0].needs", reason: "names outline, but no step has this id" },
      { field: "content.steps[2].seconds", reason: "must be at least 1" },
    ]);
    const broken = await check(author, { content: "{" });
    assert.deepEqual(broken.body.data.problems, [
      { field: "content", reason: "is not valid JSON: it ends too early" },
    ]);
  });

  test("values of a step or the result, and changed steps: from the input and the outputs of an own run; a map shows its first item", async () => {
    const { executionId } = await executeWorkflow(author, workflowId, { input: { topic: "rain" } });
    const values = (stepId?: string, content = definitionOf(SAVED)) =>
      check(author, { content, values: { ...(stepId && { stepId }), executionId } });
    assert.deepEqual((await values("outline")).body.data, {
      problems: [],
      values: [{ field: "content.steps[0].vars.topic", value: "rain", error: null }],
      changedSteps: [],
    });
    assert.deepEqual((await values()).body.data.values, [
      { field: "content.result", value: ["[sandbox] On rain0", "two1"], error: null },
    ]);
    const changed = definitionOf({
      ...SAVED,
      steps: [
        ...SAVED.steps.slice(0, 2),
        { ...SAVED.steps[2], do: { type: "transform", value: "item" } },
        transformStep("end", "1"),
      ],
    });
    assert.deepEqual((await values(undefined, changed)).body.data.changedSteps, ["drafts", "end"]);
    assert.deepEqual((await values("drafts")).body.data.values, [
      { field: "content.steps[2].items", value: ["[sandbox] On rain", "two"], error: null },
      { field: "content.steps[2].do.value", value: "[sandbox] On rain0", error: null },
    ]);
    const steps = [
      transformStep("late", "1"),
      transformStep("sum", "steps.late.output + 1", { needs: ["late"] }),
    ];
    assert.deepEqual((await values("sum", definitionOf({ steps }))).body.data.values, [
      { field: "content.steps[1].value", value: null, error: "reads a step that did not run" },
    ]);
    assert.deepEqual((await values("unknown")).body.data.values, []);
    const stranger = await market.createUser();
    const foreign = { content: definitionOf(SAVED), values: { stepId: "outline", executionId } };
    assertError(await check(stranger, foreign), 404, "EXECUTION_NOT_FOUND");
  });
});

suite("POST /ai/workflows/{id}/test", () => {
  test("a definition that is not saved: it runs, and its version ends with -draft", async () => {
    const content = definitionOf({ ...SAVED, result: "size(steps.drafts.output)" });
    const { status, body } = await start(author, { content, input: { topic: "rain" } });
    assert.deepEqual([status, body.data.status, body.data.output], [200, "completed", 2]);
    assert.equal(body.data.productVersion, "1.0.0-draft");
    const { executionId } = body.data;
    const sample = await author.patch(`/v1/products/${workflowId}`, { samples: [{ executionId }] });
    assertError(sample, 422, "VALIDATION_ERROR");
  });

  test("one step: it runs with the pinned outputs, alone, and needs no keys of others", async () => {
    const steps = [promptStep("costly", "Hi"), ...SAVED.steps.slice(1)];
    const content = definitionOf({ ...SAVED, steps }).replaceAll("outline", "costly");
    const pinned = { costly: "never", parts: ["a", "b"] };
    const { body } = await start(author, {
      ...{ content, stepId: "drafts", outputs: pinned, apiKeys: {}, input: { topic: "rain" } },
    });
    assert.deepEqual(body.data.output, ["a0", "b1"]);
    const ran = new Set(
      (await stepsOf(author, body.data.executionId)).map(({ stepId }: { stepId: string }) => stepId),
    );
    assert.deepEqual([...ran], ["drafts"]);
    const first = await start(author, { stepId: "parts", input: { topic: "rain" } });
    assert.deepEqual(first.body.data.output, ["[sandbox] On rain", "two"]);
  });

  test("all steps pinned: no step runs, and the result is evaluated", async () => {
    const outputs = { outline: "never", parts: ["never"], drafts: ["a0"] };
    const content = definitionOf({ ...SAVED, result: "steps.drafts.output + ['b']" });
    const { body } = await start(author, { content, outputs, apiKeys: {}, input: { topic: "rain" } });
    assert.deepEqual([body.data.status, body.data.output], ["completed", ["a0", "b"]]);
    assert.deepEqual(await stepsOf(author, body.data.executionId), []);
  });

  test("pinned steps stay pinned when the run waits and goes on", async () => {
    const content = definitionOf({
      steps: [
        transformStep("slow", "1 / 0"),
        { id: "ask", type: "approval", needs: ["slow"], timeoutSeconds: 600 },
        transformStep("end", "steps.slow.output + 1", { needs: ["ask", "slow"] }),
      ],
      result: "steps.end.output",
    });
    const { body } = await author.post(`/v1/ai/workflows/${workflowId}/test`, {
      content,
      outputs: { slow: 41 },
    });
    const { executionId } = body.data;
    await untilStatus(author, executionId, "waiting");
    await author.post(`/v1/ai/executions/${executionId}/steps/ask/approve`);
    assert.equal((await untilStatus(author, executionId, "completed")).output, 42);
  });

  test("bad requests: all problems; another's product and another's draft cannot be tested", async () => {
    assertError(await start(author, { content: "{" }), 422, "VALIDATION_ERROR");
    const unknown = await start(author, { stepId: "x", outputs: { y: 1 }, input: { topic: "rain" } });
    assert.deepEqual(
      unknown.body.error.details.errors.map(({ field }: { field: string }) => field),
      ["outputs.y", "stepId"],
    );
    assertError(await start(author, { input: {} }), 422, "VALIDATION_ERROR");
    const buyer = await market.createUser();
    assertError(await start(buyer, { input: { topic: "rain" } }), 404, "PRODUCT_NOT_FOUND");
    await author.post(`/v1/products/${workflowId}/publish`);
    assertError(await start(buyer, { input: { topic: "rain" } }), 403, "UNAUTHORIZED");
    await startExecution(author, workflowId, { input: { topic: "rain" } });
  });
});
