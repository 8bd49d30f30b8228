import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type EventReader, openEventStream } from "../../../test/event-stream.ts";
import { buyProduct, createProduct, haiku, refundEverything } from "../../../test/factories.ts";
import { runs } from "../../../test/full-size.ts";
import { waitForBlockedStatements } from "../../../test/locks.ts";
import { createProviderKey, startBlockedProvider } from "../../../test/runs.ts";
import { becomes } from "../../../test/until.ts";
import {
  cancelExecution,
  createWorkflow,
  definitionOf,
  echoStep,
  executeWorkflow,
  openWorkflows,
  postExecution,
  promptStep,
  startExecution,
  stepOf,
  stepsOf,
  transformStep,
  untilStatus,
} from "../../../test/workflows.ts";
import { toUuid } from "../../core/ids.ts";
import { eraseRunsOfUser } from "../prompt-runs/erase-runs.ts";
import { eraseOldRunTexts } from "./text-retention.ts";

const { provider, market, author, withOpenai } = await openWorkflows();
const retry = (id: string, who = author, headers: Record<string, string> = {}) =>
  who.post(`/v1/ai/executions/${id}/retry`, undefined, headers);
const statusesOf = async (id: string) =>
  (await stepsOf(author, id)).map(({ stepId, index, status }: Record<string, unknown>) =>
    [index === null ? stepId : `${stepId}#${index}`, status].join(" "),
  );

suite("POST /v1/ai/executions/:id/cancel", () => {
  test("running call: is aborted, and each step reports its status", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [
        promptStep("first", "1"),
        promptStep("second", "2", { needs: ["first"] }),
        promptStep("third", "3", { needs: ["second"] }),
      ],
    });
    provider.next({ answer: { text: "one" } });
    provider.next("hang");
    const before = provider.requests.length;
    const id = await startExecution(author, workflowId, withOpenai());
    // The step runs before its call arrives.
    await becomes(
      async () => provider.requests.length - before,
      (calls) => calls === 2,
    );
    assert.equal((await stepOf(author, id, "second")).status, "running");
    await cancelExecution(author, id);
    await provider.clientGone;
    assert.deepEqual(await statusesOf(id), ["first completed", "second canceled"]);
  });

  test("while the result of the last step is written: the run is canceled", async (t) => {
    const blocked = await startBlockedProvider();
    t.after(() => blocked.close());
    const ollama = await createProviderKey(author, { provider: "ollama", baseUrl: blocked.url });
    const workflowId = await createWorkflow(author, { steps: [promptStep("only", "x")] });
    const id = await startExecution(author, workflowId, { apiKeys: { openai: ollama } });
    await blocked.arrivals(1);
    const cancellation = { cancelRequestedAt: market.clock.now };
    await market.service.ctx.db.transaction().execute(async (tx) => {
      await tx.updateTable("executions").set(cancellation).where("id", "=", toUuid("exec", id)).execute();
      blocked.answer();
      await waitForBlockedStatements(market);
    });
    await untilStatus(author, id, "canceled");
  });

  test("waiting run: ends, and its step is canceled", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [{ id: "long", type: "delay", seconds: 600_000 }],
    });
    const id = await startExecution(author, workflowId);
    await untilStatus(author, id, "waiting");
    await cancelExecution(author, id);
    assert.deepEqual(await statusesOf(id), ["long canceled"]);
  });
});

suite("GET /v1/ai/executions/:id/events", () => {
  const openEvents = async (id: string, headers: Record<string, string> = {}) => {
    const listener = await openEventStream(
      market.origin,
      author.key,
      `/v1/ai/executions/${id}/events`,
      headers,
    );
    assert.equal(listener.status, 200, listener.text);
    return listener;
  };
  const typesIn = ({ events }: Pick<EventReader, "events">) =>
    events.map(({ type, data }) => [type, JSON.parse(data).stepId].filter(Boolean).join(" "));

  test("open and ended run: streams all events, or those after Last-Event-ID; the last contains the result", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [echoStep("a", "x"), { id: "later", type: "delay", seconds: 60, needs: ["a"] }],
      result: "steps.a.output",
    });
    const id = await startExecution(author, workflowId);
    const live = await openEvents(id);
    await live.until(() => live.events.some(({ type }) => type === "execution.waiting"));
    market.clock.forward(60_000);
    assert.equal(await live.ended, true);
    const all = [
      ...[
        "execution.queued",
        "execution.started",
        "step.started a",
        "step.completed a",
        "step.waiting later",
      ],
      ...["execution.waiting", "step.completed later", "execution.completed"],
    ];
    assert.deepEqual(typesIn(live), all);
    assert.deepEqual(
      live.events.map((event) => event.id),
      all.map((_, n) => String(n + 1)),
    );
    assert.equal(JSON.parse(live.events.at(-1)!.data).output, "[sandbox] x");
    const later = await openEvents(id, { "last-event-id": "5" });
    assert.equal(await later.ended, true);
    assert.deepEqual(typesIn(later), all.slice(5));
  });

  test("retried run: has one end event", async () => {
    const workflowId = await createWorkflow(author, { steps: [promptStep("bad", "x")] });
    provider.next("context");
    const { executionId: id } = await executeWorkflow(author, workflowId, withOpenai());
    await retry(id, author, { prefer: "wait=30" });
    const listener = await openEvents(id);
    assert.equal(await listener.ended, true);
    const ends = typesIn(listener).filter((type) => /^execution\.(completed|failed)/.test(type));
    assert.deepEqual(ends, ["execution.completed"]);
  });
});

suite("POST /v1/ai/executions/:id/retry", () => {
  test("failed map: repeats the failed and missing items, and no completed step", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [
        promptStep("first", "1"),
        {
          id: "all",
          type: "map",
          needs: ["first"],
          items: "['a', 'b', 'c']",
          maxConcurrency: 1,
          do: { ...promptStep("", "{{it}}", { vars: { it: "item" } }), id: undefined },
        },
      ],
      result: "[steps.first.output] + steps.all.output",
    });
    provider.next({ answer: { text: "one" } });
    provider.next({ answer: { text: "A" } });
    provider.next("context");
    const { executionId: id, status } = await executeWorkflow(author, workflowId, withOpenai());
    assert.equal(status, "failed");
    const before = provider.requests.length;
    provider.next({ answer: { text: "B" } });
    provider.next({ answer: { text: "C" } });
    const reply = await retry(id, author, { prefer: "wait=30" });
    assert.deepEqual([reply.status, reply.body.data.output], [200, ["one", "A", "B", "C"]]);
    assert.equal(reply.body.data.error, null);
    assert.equal(provider.requests.length - before, 2);
    assert.equal((await stepOf(author, id, "all", 1)).attempt, 2);
  });

  test("canceled run continues; a completed or open run and a prompt run are refused", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [{ id: "long", type: "delay", seconds: 60 }, transformStep("x", "1", { needs: ["long"] })],
    });
    const id = await startExecution(author, workflowId);
    await untilStatus(author, id, "waiting");
    assert.equal((await retry(id)).body.error.code, "INVALID_STATE");
    await cancelExecution(author, id);
    assert.equal((await retry(id)).status, 202);
    await untilStatus(author, id, "waiting");
    market.clock.forward(60_000);
    await untilStatus(author, id, "completed");
    assert.equal((await retry(id)).body.error.code, "INVALID_STATE");
    const productId = await createProduct(author);
    const prompt = await author.post("/v1/ai/execute", {
      productId,
      apiKeyId: "sandbox",
      variables: { topic: "x" },
    });
    assert.equal((await retry(prompt.body.data.executionId)).body.error.details.field, "executionId");
    assert.equal((await retry(id, await market.createUser())).body.error.code, "EXECUTION_NOT_FOUND");
  });

  test("concurrent retries: one is accepted", async () => {
    const workflowId = await createWorkflow(author, { steps: [promptStep("bad", "x")] });
    provider.next("context");
    const { executionId: id } = await executeWorkflow(author, workflowId, withOpenai());
    const before = provider.requests.length;
    const replies = await Promise.all(Array.from({ length: runs(20) }, () => retry(id)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [202, ...Array(runs(20) - 1).fill(409)]);
    await untilStatus(author, id, "completed");
    assert.equal(provider.requests.length - before, 1);
  });
});

suite("POST /v1/ai/workflows/:id/execute", () => {
  const simple = { steps: [promptStep("a", "x"), echoStep("b", "y")] };

  test("caller: the author and a buyer may run it, a stranger and a refunded buyer may not", async () => {
    const content = definitionOf(simple);
    const workflowId = await createProduct(author, {
      ...haiku,
      type: "WORKFLOW",
      content,
      compatibility: ["openai"],
    });
    const buyer = await market.createUser();
    const keys = { apiKeys: { openai: "sandbox", sandbox: "sandbox" } };
    const refused = await postExecution(buyer, workflowId, keys);
    assert.deepEqual([refused.status, refused.body.error.details.reason], [403, "purchase_required"]);
    await buyProduct(buyer, workflowId);
    assert.equal((await executeWorkflow(buyer, workflowId, keys)).status, "completed");
    await refundEverything(market, buyer);
    assert.equal((await postExecution(buyer, workflowId, keys)).status, 403);
    const { body } = await postExecution(buyer, "prod_nonsense", keys);
    assert.equal(body.error.code, "PRODUCT_NOT_FOUND");
  });

  test("prompt: is refused at workflowId", async () => {
    const reply = await postExecution(author, await createProduct(author));
    assert.deepEqual([reply.status, reply.body.error.details.field], [422, "workflowId"]);
  });

  test("invalid input and keys: one error lists all problems", async () => {
    const workflowId = await createWorkflow(author, {
      input: {
        type: "object",
        required: ["a"],
        properties: { a: { type: "string" }, n: { type: "integer" } },
      },
      steps: [
        promptStep("x", "1"),
        promptStep("y", "2", { provider: "anthropic" }),
        echoStep("z", "3"),
        promptStep("w", "4", { provider: "mistral" }),
      ],
    });
    const mistral = await createProviderKey(author, { provider: "groq" });
    const reply = await postExecution(author, workflowId, {
      input: { n: "many" },
      apiKeys: { openai: "pkey_nonsense", sandbox: "sandbox", mistral },
    });
    assert.equal(reply.status, 422);
    const problems = reply.body.error.details.errors.map(
      ({ field, reason }: Record<string, string>) => `${field} ${reason}`,
    );
    assert.deepEqual(problems, [
      "input.a is required",
      "input.n must be an integer",
      "apiKeys.openai names no provider key of yours",
      "apiKeys.anthropic is required: the workflow calls this provider",
      "apiKeys.mistral is a key of groq",
    ]);
    const unknownProvider = await postExecution(author, workflowId, { apiKeys: { nobody: "x" } });
    assert.deepEqual(
      [unknownProvider.status, unknownProvider.body.error.details.field],
      [400, "apiKeys.nobody"],
    );
    const unknown = await author.post(`/v1/ai/workflows/${workflowId}/execute`, { inputs: {} });
    assert.deepEqual([unknown.status, unknown.body.error.details.field], [400, "inputs"]);
  });

  test("provider key deleted while the run waits: the step that needs it fails", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [{ id: "later", type: "delay", seconds: 60 }, promptStep("a", "x", { needs: ["later"] })],
    });
    const key = await createProviderKey(author);
    const id = await startExecution(author, workflowId, { apiKeys: { openai: key } });
    await untilStatus(author, id, "waiting");
    await author.delete(`/v1/ai/keys/${key}`);
    market.clock.forward(60_000);
    assert.equal((await untilStatus(author, id, "failed")).error.code, "PROVIDER_KEY_NOT_FOUND");
  });

  test("concurrent requests with one Idempotency-Key: start one run", async () => {
    const workflowId = await createWorkflow(author, { steps: [transformStep("a", "1")] });
    const replies = await Promise.all(
      Array.from({ length: runs(20) }, () =>
        postExecution(author, workflowId, {}, { "idempotency-key": "once" }),
      ),
    );
    assert.ok(replies.every(({ status }) => status === 202 || status === 409));
    const { rows } = await market.query("select from executions where product_id = $1", [
      toUuid("prod", workflowId),
    ]);
    assert.equal(rows.length, 1);
  });
});

suite("texts of a run", () => {
  test("older than 30 days: are erased, and the steps stay listed", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [echoStep("b", "y"), echoStep("a", "x", { model: "sandbox-context", needs: ["b"] })],
    });
    const { executionId: id } = await executeWorkflow(author, workflowId);
    assert.equal((await stepOf(author, id, "b")).output, "[sandbox] y");
    market.clock.forward(30 * 86_400_000 - 1);
    await eraseOldRunTexts(market.service.ctx);
    assert.equal((await stepOf(author, id, "b")).output, "[sandbox] y");
    market.clock.forward(2);
    await eraseOldRunTexts(market.service.ctx);
    const { status, output } = await stepOf(author, id, "b");
    assert.deepEqual([status, output], ["completed", null]);
    assert.match((await retry(id)).body.error.message, /no longer stored/);
  });

  test("execution or account deleted: its steps are deleted", async () => {
    const owner = await market.createUser();
    const workflowId = await createWorkflow(owner, {
      steps: [echoStep("a", "x"), { id: "long", type: "delay", seconds: 60, needs: ["a"] }],
    });
    const rowsOf = async (id: string) =>
      (await market.query("select from execution_steps where execution_id = $1", [toUuid("exec", id)])).rows
        .length;
    const [first, second] = [
      await startExecution(owner, workflowId),
      await startExecution(owner, workflowId),
    ];
    for (const id of [first, second]) await untilStatus(owner, id, "waiting");
    assert.equal((await owner.delete(`/v1/ai/executions/${first}`)).status, 409);
    await cancelExecution(owner, first);
    assert.equal((await owner.delete(`/v1/ai/executions/${first}`)).status, 200);
    assert.equal((await owner.get(`/v1/ai/executions/${first}/steps`)).status, 404);
    await market.service.ctx.db
      .transaction()
      .execute((tx) => eraseRunsOfUser(market.service.ctx, tx, owner.userId));
    assert.deepEqual([await rowsOf(first), await rowsOf(second)], [0, 0]);
  });
});

suite("product step", () => {
  const productStep = (productId: string, more: object = {}) => ({
    id: "other",
    type: "product",
    productId,
    ...more,
  });

  test("prompt: gets its variables and returns its text", async () => {
    const promptId = await createProduct(author, { models: { sandbox: "sandbox-echo" } });
    const workflowId = await createWorkflow(author, {
      steps: [productStep(promptId, { variables: { topic: "'rain'" } })],
      result: "steps.other.output",
    });
    assert.equal(
      (await executeWorkflow(author, workflowId)).output,
      "[sandbox] Write a haiku about rain in English.",
    );
  });

  test("workflow in a map: runs as child executions, and their usage is summed", async () => {
    const inner = await createWorkflow(author, {
      input: { type: "object", properties: { it: { type: "string" } } },
      steps: [echoStep("a", "inner {{it}}", { vars: { it: "input.it" } })],
      result: "steps.a.output",
    });
    const workflowId = await createWorkflow(author, {
      steps: [
        {
          id: "all",
          type: "map",
          items: "['x', 'y']",
          do: { type: "product", productId: inner, variables: { it: "item" } },
        },
      ],
      result: "steps.all.output",
    });
    const run = await executeWorkflow(author, workflowId);
    assert.deepEqual(run.output, ["[sandbox] inner x", "[sandbox] inner y"]);
    const called = await stepOf(author, run.executionId, "all", 1);
    const { body } = await author.get(`/v1/ai/executions/${called.executionId}`);
    assert.deepEqual([body.data.productId, body.data.output], [inner, "[sandbox] inner y"]);
    assert.equal(run.usage.totalTokens, 2 * body.data.usage.totalTokens);
  });

  test("failed child run: fails the step; a cancellation also cancels the child run", async () => {
    const failing = await createWorkflow(author, {
      steps: [echoStep("a", "x", { model: "sandbox-context" })],
    });
    const outer = await createWorkflow(author, { steps: [productStep(failing)] });
    const run = await executeWorkflow(author, outer);
    assert.deepEqual([run.status, run.error.code], ["failed", "CONTEXT_LENGTH_EXCEEDED"]);
    const sleeping = await createWorkflow(author, {
      steps: [{ id: "long", type: "delay", seconds: 60_000 }],
    });
    const id = await startExecution(author, await createWorkflow(author, { steps: [productStep(sleeping)] }));
    const { executionId } = await becomes(
      () => stepOf(author, id, "other"),
      (step) => Boolean(step?.executionId),
    );
    await untilStatus(author, executionId, "waiting");
    await cancelExecution(author, id);
    await untilStatus(author, executionId, "canceled");
  });

  test("product not bought, without a key or nested too deep: the request is refused", async () => {
    const other = await market.createUser();
    const foreign = await createProduct(other, { compatibility: ["anthropic"] });
    const own = await createProduct(author, { compatibility: ["anthropic"] });
    let deep = await createWorkflow(author, { steps: [transformStep("a", "1")] });
    for (let n = 0; n < 3; n++) deep = await createWorkflow(author, { steps: [productStep(deep)] });
    const workflowId = await createWorkflow(author, {
      steps: [
        { ...productStep(foreign, { variables: { topic: "'x'" } }), id: "a" },
        { ...productStep(own, { variables: { topic: "'x'" } }), id: "b" },
        { ...productStep(deep), id: "c" },
      ],
    });
    const reply = await postExecution(author, workflowId, withOpenai());
    const problems = reply.body.error.details.errors.map(
      ({ field, reason }: Record<string, string>) => `${field} ${reason}`,
    );
    assert.equal(reply.status, 422);
    assert.equal(problems.length, 3, problems.join("\n"));
    assert.match(problems.join("\n"), /workflowId steps\[0\] runs prod_\w+, which you have not bought/);
    assert.match(problems.join("\n"), /apiKeys must have a key of one of anthropic/);
    assert.match(problems.join("\n"), /more than 3 deep/);
  });

  test("product refunded while the run waits: the step fails", async () => {
    const other = await market.createUser();
    const bought = await createProduct(other);
    const buyer = await market.createUser();
    await buyProduct(buyer, bought);
    const workflowId = await createWorkflow(buyer, {
      steps: [
        { id: "later", type: "delay", seconds: 60 },
        productStep(bought, { needs: ["later"], variables: { topic: "'x'" } }),
      ],
    });
    const id = await startExecution(buyer, workflowId);
    await untilStatus(buyer, id, "waiting");
    await refundEverything(market, buyer);
    market.clock.forward(60_000);
    assert.equal((await untilStatus(buyer, id, "failed")).error.code, "UNAUTHORIZED");
  });

  test("step that could not call: the product stays unused and refundable", async () => {
    const bought = await createProduct(await market.createUser());
    const buyer = await market.createUser();
    await buyProduct(buyer, bought);
    const key = await createProviderKey(buyer);
    const workflowId = await createWorkflow(buyer, {
      steps: [
        { id: "later", type: "delay", seconds: 60 },
        productStep(bought, { needs: ["later"], variables: { topic: "'x'" } }),
      ],
    });
    const id = await startExecution(buyer, workflowId, { apiKeys: { openai: key } });
    await untilStatus(buyer, id, "waiting");
    assert.equal((await buyer.delete(`/v1/ai/keys/${key}`)).status, 200);
    market.clock.forward(60_000);
    assert.equal((await untilStatus(buyer, id, "failed")).error.code, "PROVIDER_KEY_NOT_FOUND");
    const { rows } = await market.query("select used_at from entitlements where product_id = $1", [
      toUuid("prod", bought),
    ]);
    assert.deepEqual(rows, [{ used_at: null }]);
  });

  test("product of another author: counts as a run there, without its texts", async () => {
    const other = await market.createUser();
    const bought = await createProduct(other);
    const buyer = await market.createUser();
    await buyProduct(buyer, bought);
    const openai = await createProviderKey(buyer);
    const topic = "a-buyers-secret";
    const workflowId = await createWorkflow(buyer, {
      steps: [productStep(bought, { variables: { topic: `'${topic}'` }, onError: "continue" })],
    });
    for (const next of [{ answer: { text: topic } }, "bad-key"] as const) {
      provider.next(next);
      await executeWorkflow(buyer, workflowId, { apiKeys: { openai } });
    }
    const runs = await other.get(`/v1/products/${bought}/runs`);
    assert.deepEqual(runs.body.data, {
      total: 2,
      completed: 1,
      failed: 1,
      canceled: 0,
      buyers: 1,
      last30Days: 2,
    });
    assert.ok(!runs.text.includes(topic));
    const { body } = await buyer.get("/v1/ai/executions");
    assert.deepEqual(
      body.data.map(({ type }: { type: string }) => type),
      ["WORKFLOW", "WORKFLOW"],
      "the history of the buyer has no execution of the product itself",
    );
    const { rows } = await market.query("select * from executions where product_id = $1", [
      toUuid("prod", bought),
    ]);
    assert.ok(!JSON.stringify(rows).includes(topic));
  });
});
