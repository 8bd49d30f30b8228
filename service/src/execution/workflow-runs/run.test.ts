import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { runs } from "../../../test/full-size.ts";
import { assertError } from "../../../test/market.ts";
import { createProviderKey } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import {
  cancelExecution,
  createWorkflow,
  echoStep,
  executeWorkflow,
  executionOf,
  openWorkflows,
  promptStep,
  startExecution,
  stepOf,
  stepsOf,
  transformStep,
  untilStatus,
} from "../../../test/workflows.ts";
import { toUuid } from "../../core/ids.ts";

const { provider, market, author, worker, withOpenai } = await openWorkflows();

/** The driver of the run answers a request that waits; the history comes from the database. */
async function assertEqualsHistory(answer: Awaited<ReturnType<typeof executeWorkflow>>) {
  const stored = await executionOf(author, answer.executionId);
  for (const field of ["status", "output", "error", "usage", "duration", "createdAt", "completedAt"])
    assert.deepEqual(answer[field], stored[field], field);
}

suite("workflow run", () => {
  test("input and defaults: steps run in order to the result", async () => {
    const workflowId = await createWorkflow(author, {
      input: {
        type: "object",
        properties: { who: { type: "string" }, times: { type: "integer", default: 2 } },
      },
      steps: [
        echoStep("greet", "Hello {{who}}, {{times}} times", {
          vars: { who: "input.who", times: "string(input.times)" },
        }),
        transformStep("loud", "steps.greet.output + '!'", { needs: ["greet"] }),
      ],
      result: "{'said': steps.loud.output, 'times': input.times}",
    });
    const run = await executeWorkflow(author, workflowId, { input: { who: "you" } });
    assert.equal(run.status, "completed");
    assert.deepEqual(run.output, { said: "[sandbox] Hello you, 2 times!", times: 2 });
    assert.deepEqual([run.error, run.usage.estimatedCost, run.usage.costKnown], [null, 0, true]);
    assert.ok(run.usage.promptTokens > 0);
    const [greet, loud] = await stepsOf(author, run.executionId);
    assert.deepEqual(
      [greet.stepId, greet.status, greet.attempt, greet.provider],
      ["greet", "completed", 1, "sandbox"],
    );
    assert.deepEqual(
      [loud.output, loud.usage, loud.attempt],
      ["[sandbox] Hello you, 2 times!!".slice(0, -1), null, 0],
    );
  });

  test("history: contains input and output; no table or log contains them in clear text", async () => {
    const secret = "a very private topic";
    const workflowId = await createWorkflow(author, {
      input: { type: "object", properties: { topic: { type: "string" } } },
      steps: [echoStep("a", "On {{topic}}", { vars: { topic: "input.topic" } })],
      result: "steps.a.output",
    });
    const run = await executeWorkflow(author, workflowId, { input: { topic: secret } });
    const { body } = await author.get(`/v1/ai/executions/${run.executionId}`);
    const { type, status, variables, output, provider: none } = body.data;
    assert.deepEqual([type, status, none], ["WORKFLOW", "completed", null]);
    assert.deepEqual([variables, output], [{ topic: secret }, `[sandbox] On ${secret}`]);
    for (const table of ["workflow_runs", "execution_steps", "execution_events", "executions"]) {
      const { rows } = await market.query(`select * from ${table}`);
      assert.ok(rows.length > 0 && !JSON.stringify(rows).includes(secret), table);
    }
    assert.ok(!market.logs.join().includes(secret));
  });

  test("independent steps: run in parallel; dependent steps wait", async () => {
    const before = provider.requests.length;
    const workflowId = await createWorkflow(author, {
      steps: [
        promptStep("left", "left"),
        promptStep("right", "right"),
        transformStep("both", "[steps.left.output, steps.right.output]", { needs: ["left", "right"] }),
        promptStep("last", "{{both}}", { needs: ["both"], vars: { both: "steps.both.output" } }),
      ],
      result: "steps.last.output",
    });
    for (const text of ["one", "two", "three"]) provider.next({ answer: { text } });
    const run = await executeWorkflow(author, workflowId, withOpenai());
    assert.equal(run.output, "three");
    await assertEqualsHistory(run);
    const bodies = provider.requests
      .slice(before)
      .map(({ body }) => (body as { messages: { content: string }[] }).messages[0]!.content);
    assert.deepEqual(bodies.slice(0, 2).sort(), ["left", "right"]);
    assert.match(bodies[2]!, /^\["(one","two|two","one)"\]$/);
  });

  test("`when` is false: the step is skipped and outputs null", async () => {
    const workflowId = await createWorkflow(author, {
      input: { type: "object", properties: { go: { type: "boolean" } } },
      steps: [
        echoStep("maybe", "Never", { when: "input.go" }),
        transformStep("seen", "steps.maybe.output == null", { needs: ["maybe"] }),
      ],
      result: "steps.seen.output",
    });
    const skipped = await executeWorkflow(author, workflowId, { input: { go: false } });
    assert.equal(skipped.output, true);
    assert.equal((await stepOf(author, skipped.executionId, "maybe")).status, "skipped");
    assert.equal((await executeWorkflow(author, workflowId, { input: { go: true } })).output, false);
  });

  test("expression that cannot be evaluated: fails the run, and the error quotes no value", async () => {
    const workflowId = await createWorkflow(author, {
      input: { type: "object", properties: { text: { type: "string" } } },
      steps: [transformStep("number", "int(input.text)")],
      result: "steps.number.output",
    });
    const run = await executeWorkflow(author, workflowId, { input: { text: "my secret" } });
    assert.deepEqual([run.status, run.error.code, run.output], ["failed", "EXPRESSION_FAILED", null]);
    await assertEqualsHistory(run);
    assert.match(run.error.message, /^Step number: value /);
    assert.ok(!run.error.message.includes("secret"));
  });

  test("sandbox step with an output schema: outputs a matching value for the next steps", async () => {
    const output = {
      type: "object",
      required: ["n"],
      properties: {
        n: { type: "integer", minimum: 3 },
        parts: { type: "array", items: { $ref: "#/$defs/part" } },
      },
      $defs: { part: { type: "string", maxLength: 4 } },
    };
    const workflowId = await createWorkflow(author, {
      steps: [
        echoStep("outline", "x", { model: "sandbox", output, options: { maxTokens: 1 } }),
        transformStep("parts", "steps.outline.output.parts.map(p, p + '!')", { needs: ["outline"] }),
      ],
      result: "[steps.outline.output.n, steps.parts.output]",
    });
    const run = await executeWorkflow(author, workflowId);
    assert.deepEqual([run.output, run.error], [[3, ["sand!"]], null]);
    assert.equal((await stepOf(author, run.executionId, "outline")).attempt, 1);
  });

  test("step with an output schema: parses JSON, asks once more, then fails", async () => {
    const output = { type: "object", required: ["n"], properties: { n: { type: "integer" } } };
    const workflowId = await createWorkflow(author, {
      steps: [promptStep("json", "JSON!", { output })],
      result: "steps.json.output",
    });
    provider.next({ answer: { text: '```json\n{"n": 1}\n```' } });
    assert.deepEqual((await executeWorkflow(author, workflowId, withOpenai())).output, { n: 1 });
    provider.next({ answer: { text: "I am sorry" } });
    provider.next({ answer: { text: '{"n": 2}' } });
    const repaired = await executeWorkflow(author, workflowId, withOpenai());
    assert.deepEqual([repaired.output, repaired.usage.completionTokens], [{ n: 2 }, 10]);
    for (const text of ['{"n": "x"}', "[]"]) provider.next({ answer: { text } });
    assert.equal(
      (await executeWorkflow(author, workflowId, withOpenai())).error.code,
      "OUTPUT_SCHEMA_MISMATCH",
    );
  });
});

suite("embedding step", () => {
  const input = { type: "object", properties: { texts: { type: "array" } } };
  const embed = (id: string, more: object = {}) => ({
    ...{ id, type: "embedding", provider: "openai", text: "input.texts[0]" },
    ...more,
  });

  test("sandbox: a vector, and the cosines with other texts, which are 1 for the same words", async () => {
    const workflowId = await createWorkflow(author, {
      input,
      steps: [
        embed("vector"),
        embed("cosines", { compareTo: "input.texts", output: { type: "array", items: { type: "number" } } }),
      ],
      result: "{'size': size(steps.vector.output), 'cosines': steps.cosines.output}",
    });
    const texts = ["Rain falls", "falls, rain!", "Rain stays", "sun"];
    const run = await executeWorkflow(author, workflowId, {
      ...{ input: { texts }, apiKeys: { openai: "sandbox" } },
    });
    assert.equal(run.status, "completed", JSON.stringify(run.error));
    assert.deepEqual(run.output.size, 1_024);
    const rounded = run.output.cosines.map((cosine: number) => Math.round(cosine * 1_000) / 1_000);
    assert.deepEqual(rounded, [1, 1, 0.5, 0]);
    const step = await stepOf(author, run.executionId, "cosines");
    assert.deepEqual(
      [step.type, step.provider, step.model, step.usage.completionTokens],
      ["embedding", "sandbox", "sandbox", 0],
    );
  });

  test("provider: the call is paid, within maxCost and the budget of its key, and a schema checks its output", async () => {
    const model = "text-embedding-3-small";
    const workflowId = await createWorkflow(author, {
      ...{ input, result: "steps.a.output" },
      steps: [embed("a", { model, compareTo: "['eight ch']" })],
    });
    const texts = ["x".repeat(600_000)];
    const before = provider.requests.length;
    const run = await executeWorkflow(author, workflowId, { ...withOpenai(), input: { texts } });
    assert.ok(run.output[0] > 0.99 && run.output[0] < 1);
    assert.deepEqual(
      [run.usage.promptTokens, run.usage.completionTokens, run.usage.estimatedCost],
      [12, 0, 0.00000024],
    );
    assert.equal(provider.requests[before]?.url, "/v1/embeddings");
    const poor = await executeWorkflow(author, workflowId, {
      ...{ ...withOpenai(), input: { texts }, options: { maxCost: 0.001 } },
    });
    assert.deepEqual([poor.status, poor.error.code], ["failed", "VALIDATION_ERROR"]);
    const key = await createProviderKey(author, { monthlyBudget: 0.01 });
    const broke = await executeWorkflow(author, workflowId, { apiKeys: { openai: key }, input: { texts } });
    assert.deepEqual([broke.status, broke.error.code], ["failed", "KEY_BUDGET_EXCEEDED"]);
    const cheap = await executeWorkflow(author, workflowId, {
      ...{ apiKeys: { openai: key }, input: { texts: ["x"] } },
    });
    assert.deepEqual([cheap.status, cheap.usage.estimatedCost], ["completed", 0.00000024]);
    const asked = provider.requests.slice(before).filter(({ method }) => method === "POST");
    assert.equal(asked.length, 2);
    const strict = await createWorkflow(author, {
      steps: [embed("a", { text: "'x'", output: { type: "string" } })],
    });
    const { error } = await executeWorkflow(author, strict, withOpenai());
    assert.equal(error.code, "OUTPUT_SCHEMA_MISMATCH");
  });

  test("texts that cannot be embedded, and a broken answer: the step fails and says why, without a call where none is needed", async () => {
    const before = provider.requests.length;
    const wrong: [object, RegExp][] = [
      [{ text: "''" }, /text is no text, or empty/],
      [{ text: "1" }, /text is no text, or empty/],
      [{ compareTo: "'x'" }, /compareTo is no list of texts/],
      [{ compareTo: "['']" }, /compareTo is no list of texts/],
      [{ compareTo: "input.texts" }, /compareTo has 32 texts; at most 31/],
    ];
    for (const [fields, message] of wrong) {
      const workflowId = await createWorkflow(author, { input, steps: [embed("a", fields)] });
      const { error } = await executeWorkflow(author, workflowId, {
        ...{ ...withOpenai(), input: { texts: Array(32).fill("x") } },
      });
      assert.equal(error.code, "EXPRESSION_FAILED");
      assert.match(error.message, message);
    }
    assert.equal(provider.requests.length, before);
    provider.next({ status: 200, body: { data: [{ embedding: [0] }], usage: { prompt_tokens: 9 } } });
    const workflowId = await createWorkflow(author, { steps: [embed("a", { text: "'x'" })] });
    const { error, usage } = await executeWorkflow(author, workflowId, withOpenai());
    assert.deepEqual([error.code, usage.promptTokens], ["PROVIDER_BAD_RESPONSE", 9]);
    assert.match(error.message, /zero in all dimensions/);
  });
});

suite("map step", () => {
  const mapOf = (more: object = {}, work: object = {}) => ({
    id: "all",
    type: "map",
    items: "input.list",
    do: {
      type: "prompt",
      provider: "openai",
      messages: [{ role: "user", content: "{{i}}:{{it}}" }],
      vars: { i: "string(index)", it: "item" },
      ...work,
    },
    ...more,
  });
  const input = { type: "object", properties: { list: { type: "array" } } };

  test("transform: outputs are in the order of the items", async () => {
    const workflowId = await createWorkflow(author, {
      input,
      steps: [{ ...mapOf(), do: { type: "transform", value: "item + string(index)" } }],
      result: "steps.all.output",
    });
    const run = await executeWorkflow(author, workflowId, { input: { list: ["a", "b", "c"] } });
    assert.deepEqual(run.output, ["a0", "b1", "c2"]);
    const steps = await stepsOf(author, run.executionId);
    assert.deepEqual(
      steps.map(({ index }: { index: number | null }) => index),
      [null, 0, 1, 2],
    );
    assert.deepEqual((await executeWorkflow(author, workflowId, { input: { list: [] } })).output, []);
  });

  test("maxConcurrency 2: makes two calls at once", async () => {
    const workflowId = await createWorkflow(author, {
      input,
      steps: [mapOf({ maxConcurrency: 2 })],
      result: "size(steps.all.output)",
    });
    const before = provider.requests.length;
    const id = await (async () => {
      for (let n = 0; n < 2; n++) provider.next("hang");
      return startExecution(author, workflowId, { ...withOpenai(), input: { list: ["a", "b", "c", "d"] } });
    })();
    await becomes(
      async () => provider.requests.length - before,
      (count) => count === 2,
    );
    const running = (await stepsOf(author, id)).filter(
      ({ index }: { index: number | null }) => index !== null,
    );
    assert.equal(running.length, 2);
    await cancelExecution(author, id);
    assert.equal(provider.requests.length - before, 2);
  });

  test("key at its concurrency limit: items wait and do not fail", async () => {
    const narrow = await createProviderKey(author, { maxConcurrency: 1 });
    const workflowId = await createWorkflow(author, {
      input,
      steps: [mapOf()],
      result: "size(steps.all.output)",
    });
    const id = await startExecution(author, workflowId, {
      apiKeys: { openai: narrow },
      input: { list: ["a", "b", "c", "d"] },
    });
    const ended = await becomes(
      async () => {
        // Refused items retry by the clock. No call is open then, whose leases would end by it.
        if (
          (await stepsOf(author, id)).every(
            ({ status, index }: { status: string; index: number | null }) =>
              index === null || status === "completed" || status === "waiting",
          )
        )
          market.clock.forward(2_000);
        return executionOf(author, id);
      },
      ({ status }) => status === "completed" || status === "failed",
    );
    assert.equal(ended.output, 4, JSON.stringify(ended.error));
    const calls = (await stepsOf(author, id)).slice(1).map(({ attempt }: { attempt: number }) => attempt);
    assert.deepEqual(calls, [1, 1, 1, 1]);
  });

  test("over 200 items or no list: fails; a failed item with onError outputs null", async () => {
    const workflowId = await createWorkflow(author, {
      input: { type: "object" },
      steps: [
        {
          ...mapOf({ items: "input.list.map(x, x)" }),
          do: { type: "transform", value: "10 / item", onError: "continue" },
        },
      ],
      result: "steps.all.output",
    });
    const run = (list: unknown) => executeWorkflow(author, workflowId, { input: { list } });
    assert.equal((await run(Array(201).fill(1))).error.code, "LIMIT_EXCEEDED");
    assert.equal((await run("text")).error.code, "EXPRESSION_FAILED");
    assert.deepEqual((await run([5, 0, 2])).output, [2, null, 5]);
  });

  test("over 200 items of the input: the request is refused", async () => {
    const steps = (step: object) => [{ ...mapOf({ items: "input.order.lines", ...step }), do: ONE }];
    const ONE = { type: "transform", value: "1" };
    const definition = { input: { type: "object" }, result: "1" };
    const body = (length: number) => ({ input: { order: { lines: Array(length).fill(1) } }, apiKeys: {} });
    const start = async (id: string, length: number) =>
      author.post(`/v1/ai/workflows/${id}/execute`, body(length));
    const id = await createWorkflow(author, { ...definition, steps: steps({}) });
    assertError(await start(id, 201), 422, "VALIDATION_ERROR", "input.order.lines");
    assert.equal((await start(id, 200)).status, 202);
    const skipped = await createWorkflow(author, { ...definition, steps: steps({ when: "false" }) });
    assert.equal((await start(skipped, 201)).status, 202);
  });

  test("failed item: fails the run, and no further item is called", async () => {
    const workflowId = await createWorkflow(author, {
      input,
      steps: [mapOf({ maxConcurrency: 1 })],
      result: "1",
    });
    const before = provider.requests.length;
    provider.next({ answer: { text: "fine" } });
    provider.next("context");
    const run = await executeWorkflow(author, workflowId, {
      ...withOpenai(),
      input: { list: ["a", "b", "c"] },
    });
    assert.deepEqual([run.status, run.error.code], ["failed", "CONTEXT_LENGTH_EXCEEDED"]);
    assert.equal(provider.requests.length - before, 2);
  });

  test("500 steps and items in all: allowed; more fail", async () => {
    const map = (id: string) => ({
      id,
      type: "map",
      items: "input.list",
      do: { type: "transform", value: "1" },
    });
    const workflowId = await createWorkflow(author, { input, steps: ["a", "b", "c"].map(map), result: "1" });
    const run = (size: number) =>
      executeWorkflow(author, workflowId, { input: { list: Array(size).fill(0) } });
    assert.equal((await run(165)).status, "completed");
    assert.equal((await run(166)).error.code, "LIMIT_EXCEEDED");
  });
});

suite("timers", () => {
  test("failed step with `retry`: retries after a doubling delay", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [promptStep("again", "x", { retry: { max: 2, backoffSeconds: 30 } })],
      result: "steps.again.output",
    });
    provider.next("bad-json");
    const id = await startExecution(author, workflowId, withOpenai());
    await untilStatus(author, id, "waiting");
    const { status, attempt, error, dueAt } = await stepOf(author, id, "again");
    assert.deepEqual([status, attempt, error.code], ["waiting", 1, "PROVIDER_BAD_RESPONSE"]);
    assert.equal(Date.parse(dueAt) - market.clock.now.getTime(), 30_000);
    provider.next("bad-json");
    market.clock.forward(30_000);
    const second = await becomes(
      () => stepOf(author, id, "again"),
      (step) => step.attempt === 2 && step.status === "waiting",
    );
    assert.equal(Date.parse(second.dueAt) - market.clock.now.getTime(), 60_000);
    provider.next({ answer: { text: "at last" } });
    market.clock.forward(60_000);
    assert.equal((await untilStatus(author, id, "completed")).output, "at last");
    assert.equal((await stepOf(author, id, "again")).attempt, 3);
  });

  test("failed step with onError: outputs null after its retries", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [
        echoStep("bad", "x", { model: "sandbox-500", onError: "continue" }),
        transformStep("after", "steps.bad.output == null", { needs: ["bad"] }),
      ],
      result: "steps.after.output",
    });
    const run = await executeWorkflow(author, workflowId);
    assert.deepEqual([run.status, run.output], ["completed", true]);
    assert.equal((await stepOf(author, run.executionId, "bad")).error.code, "PROVIDER_ERROR");
  });

  test("call over the step's timeout: is aborted", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [promptStep("slow", "x", { timeoutSeconds: 20 })],
    });
    provider.next("hang");
    const arrival = provider.nextRequest();
    const id = await startExecution(author, workflowId, withOpenai());
    await arrival;
    market.clock.forward(20_000);
    assert.equal((await untilStatus(author, id, "failed")).error.code, "STEP_TIMEOUT");
    await provider.clientGone;
  });

  test("delay: waits without a lease", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [
        { id: "later", type: "delay", seconds: 86_400 },
        transformStep("then", "'then'", { needs: ["later"] }),
      ],
      result: "steps.then.output",
    });
    const id = await startExecution(author, workflowId);
    await untilStatus(author, id, "waiting");
    const leased = "select from workflow_runs where lease_token is not null and execution_id = $1";
    assert.equal((await market.query(leased, [toUuid("exec", id)])).rows.length, 0);
    market.clock.forward(86_399_000);
    await worker.worker.claimDueRuns();
    assert.equal((await stepOf(author, id, "later")).status, "waiting");
    market.clock.forward(1_000);
    assert.equal((await untilStatus(author, id, "completed")).output, "then");
  });
});

suite("approval", () => {
  const createApproval = (more: object = {}) =>
    createWorkflow(author, {
      steps: [
        { id: "ok", type: "approval", timeoutSeconds: 3_600, ...more },
        transformStep("then", "steps.ok.output", { needs: ["ok"] }),
      ],
      result: "steps.then.output",
    });
  const decide = (id: string, verb: string, stepId = "ok", who = author) =>
    who.post(`/v1/ai/executions/${id}/steps/${stepId}/${verb}`);

  test("approved: the run continues", async () => {
    const id = await startExecution(author, await createApproval());
    await untilStatus(author, id, "waiting");
    const reply = await decide(id, "approve");
    assert.deepEqual([reply.status, reply.body.data.decision], [200, "approved"]);
    const { output } = await untilStatus(author, id, "completed");
    assert.deepEqual(output, { approved: true, decidedAt: market.clock.now.toISOString() });
  });

  test("rejected: the run fails, or continues with onError", async () => {
    const strict = await startExecution(author, await createApproval());
    await untilStatus(author, strict, "waiting");
    await decide(strict, "reject");
    assert.equal((await untilStatus(author, strict, "failed")).error.code, "APPROVAL_REJECTED");
    const lenient = await startExecution(author, await createApproval({ onError: "continue" }));
    await untilStatus(author, lenient, "waiting");
    await decide(lenient, "reject");
    assert.equal((await untilStatus(author, lenient, "completed")).output, null);
  });

  test("not decided in time: the step fails and refuses a later decision", async () => {
    const id = await startExecution(author, await createApproval());
    await untilStatus(author, id, "waiting");
    market.clock.forward(3_600_000);
    const late = await decide(id, "approve");
    assert.deepEqual([late.status, late.body.error.code], [409, "INVALID_STATE"]);
    assert.equal((await untilStatus(author, id, "failed")).error.code, "APPROVAL_TIMEOUT");
  });

  test("concurrent decisions: one is accepted", async () => {
    const id = await startExecution(author, await createApproval());
    await untilStatus(author, id, "waiting");
    const replies = await Promise.all(
      Array.from({ length: runs(20) }, (_, n) => decide(id, n % 2 ? "approve" : "reject")),
    );
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(runs(20) - 1).fill(409)]);
    const { decision } = await stepOf(author, id, "ok");
    await untilStatus(author, id, decision === "approved" ? "completed" : "failed");
  });

  test("prompt: is shown with the step before and after the decision", async () => {
    const prompt = "Shall it go out?";
    const id = await startExecution(author, await createApproval({ prompt }));
    await untilStatus(author, id, "waiting");
    assert.equal((await stepOf(author, id, "ok")).prompt, prompt);
    assert.equal((await decide(id, "approve")).body.data.prompt, prompt);
    await untilStatus(author, id, "completed");
    assert.equal((await stepOf(author, id, "then")).prompt, null);
    const silent = await startExecution(author, await createApproval());
    await untilStatus(author, silent, "waiting");
    assert.equal((await stepOf(author, silent, "ok")).prompt, null);
  });

  test("stranger, unknown step, decided step or no approval: is refused", async () => {
    const id = await startExecution(author, await createApproval());
    await untilStatus(author, id, "waiting");
    const stranger = await market.createUser();
    const codeOf = async (reply: ReturnType<typeof decide>) => (await reply).body.error.code;
    assert.equal(await codeOf(decide(id, "approve", "ok", stranger)), "EXECUTION_NOT_FOUND");
    assert.equal(await codeOf(decide("exec_nonsense", "approve")), "EXECUTION_NOT_FOUND");
    for (const stepId of ["then", "%00", "a".repeat(1_000)])
      assert.equal(await codeOf(decide(id, "approve", stepId)), "STEP_NOT_FOUND");
    await decide(id, "approve");
    await untilStatus(author, id, "completed");
    for (const stepId of ["ok", "then"])
      assert.equal(await codeOf(decide(id, "reject", stepId)), "INVALID_STATE");
  });
});
