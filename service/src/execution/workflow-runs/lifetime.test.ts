import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type EventReader, openEventStream } from "../../../test/event-stream.ts";
import { buyProduct, createProduct, haiku, refundEverything } from "../../../test/factories.ts";
import { createProviderKey } from "../../../test/runs.ts";
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
const retries = (id: string, who = author, headers: Record<string, string> = {}) =>
  who.post(`/v1/ai/executions/${id}/retry`, undefined, headers);
const statusesOf = async (id: string) =>
  (await stepsOf(author, id)).map(({ stepId, index, status }: Record<string, unknown>) =>
    [index === null ? stepId : `${stepId}#${index}`, status].join(" "),
  );

suite("cancelling", () => {
  test("gives up what is called, and says of each step how it ended", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [
        promptStep("first", "1"),
        promptStep("second", "2", { needs: ["first"] }),
        promptStep("third", "3", { needs: ["second"] }),
      ],
    });
    provider.next({ answer: { text: "one" } });
    provider.next("hang");
    const id = await startExecution(author, workflowId, withOpenai());
    await becomes(
      () => stepOf(author, id, "second"),
      (step) => step?.status === "running",
    );
    await cancelExecution(author, id);
    await provider.clientGone;
    assert.deepEqual(await statusesOf(id), ["first completed", "second canceled"]);
  });

  test("ends what waits or has not begun", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [{ id: "long", type: "delay", seconds: 600_000 }],
    });
    const id = await startExecution(author, workflowId);
    await untilStatus(author, id, "waiting");
    await cancelExecution(author, id);
    assert.deepEqual(await statusesOf(id), ["long canceled"]);
  });
});

suite("events", () => {
  const heardBy = async (id: string, headers: Record<string, string> = {}) => {
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

  test("are events as they happen, and afterwards, from wherever one stood; the last tells the result", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [echoStep("a", "x"), { id: "later", type: "delay", seconds: 60, needs: ["a"] }],
      result: "steps.a.output",
    });
    const id = await startExecution(author, workflowId);
    const live = await heardBy(id);
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
    const later = await heardBy(id, { "last-event-id": "5" });
    assert.equal(await later.ended, true);
    assert.deepEqual(typesIn(later), all.slice(5));
  });

  test("of a run that was retried have one end", async () => {
    const workflowId = await createWorkflow(author, { steps: [promptStep("bad", "x")] });
    provider.next("context");
    const { executionId: id } = await executeWorkflow(author, workflowId, withOpenai());
    await retries(id, author, { prefer: "wait=30" });
    const listener = await heardBy(id);
    assert.equal(await listener.ended, true);
    const ends = typesIn(listener).filter((type) => /^execution\.(completed|failed)/.test(type));
    assert.deepEqual(ends, ["execution.completed"]);
  });
});

suite("a retry", () => {
  test("calls again what failed, and nothing that had completed", async () => {
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
    const reply = await retries(id, author, { prefer: "wait=30" });
    assert.deepEqual([reply.status, reply.body.data.output], [200, ["one", "A", "B", "C"]]);
    assert.equal(reply.body.data.error, null);
    assert.equal(provider.requests.length - before, 2);
    assert.equal((await stepOf(author, id, "all", 1)).attempt, 2);
  });

  test("of what was canceled runs on; of what completed, runs, or is a prompt's, is refused", async () => {
    const workflowId = await createWorkflow(author, {
      steps: [{ id: "long", type: "delay", seconds: 60 }, transformStep("x", "1", { needs: ["long"] })],
    });
    const id = await startExecution(author, workflowId);
    await untilStatus(author, id, "waiting");
    assert.equal((await retries(id)).body.error.code, "INVALID_STATE");
    await cancelExecution(author, id);
    assert.equal((await retries(id)).status, 202);
    await untilStatus(author, id, "waiting");
    market.clock.forward(60_000);
    await untilStatus(author, id, "completed");
    assert.equal((await retries(id)).body.error.code, "INVALID_STATE");
    const productId = await createProduct(author);
    const prompt = await author.post("/v1/ai/execute", {
      productId,
      apiKeyId: "sandbox",
      variables: { topic: "x" },
    });
    assert.equal((await retries(prompt.body.data.executionId)).body.error.details.field, "executionId");
    assert.equal((await retries(id, await market.createUser())).body.error.code, "EXECUTION_NOT_FOUND");
  });

  test("of 20 at the same time is one", async () => {
    const workflowId = await createWorkflow(author, { steps: [promptStep("bad", "x")] });
    provider.next("context");
    const { executionId: id } = await executeWorkflow(author, workflowId, withOpenai());
    const before = provider.requests.length;
    const replies = await Promise.all(Array.from({ length: 20 }, () => retries(id)));
    assert.deepEqual(replies.map(({ status }) => status).sort(), [202, ...Array(19).fill(409)]);
    await untilStatus(author, id, "completed");
    assert.equal(provider.requests.length - before, 1);
  });
});

suite("who may run a workflow", () => {
  const simple = { steps: [promptStep("a", "x"), echoStep("b", "y")] };

  test("is its author, or who bought it, and not a stranger", async () => {
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

  test("a prompt is refused, as workflowId", async () => {
    const reply = await postExecution(author, await createProduct(author));
    assert.deepEqual([reply.status, reply.body.error.details.field], [422, "workflowId"]);
  });

  test("all that is wrong with the input and the keys is told at once", async () => {
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
    const nobody = await postExecution(author, workflowId, { apiKeys: { nobody: "x" } });
    assert.deepEqual([nobody.status, nobody.body.error.details.field], [400, "apiKeys.nobody"]);
    const unknown = await author.post(`/v1/ai/workflows/${workflowId}/execute`, { inputs: {} });
    assert.deepEqual([unknown.status, unknown.body.error.details.field], [400, "inputs"]);
  });

  test("a key that is forgotten meanwhile fails the step that needs it", async () => {
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

  test("an Idempotency-Key begins one run, of 20 at the same time", async () => {
    const workflowId = await createWorkflow(author, { steps: [transformStep("a", "1")] });
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => postExecution(author, workflowId, {}, { "idempotency-key": "once" })),
    );
    assert.ok(replies.every(({ status }) => status === 202 || status === 409));
    const { rows } = await market.query("select from executions where product_id = $1", [
      toUuid("prod", workflowId),
    ]);
    assert.equal(rows.length, 1);
  });
});

suite("what is kept of a run", () => {
  test("are its texts for 30 days, and that it ran after that", async () => {
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
    assert.match((await retries(id)).body.error.message, /no longer kept/);
  });

  test("is nothing once it is deleted, by its owner or with their account", async () => {
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

suite("a step that runs another product", () => {
  const runs = (productId: string, more: object = {}) => ({
    id: "other",
    type: "product",
    productId,
    ...more,
  });

  test("gives a prompt its variables, and gets its text", async () => {
    const promptId = await createProduct(author, { models: { sandbox: "sandbox-echo" } });
    const workflowId = await createWorkflow(author, {
      steps: [runs(promptId, { variables: { topic: "'rain'" } })],
      result: "steps.other.output",
    });
    assert.equal(
      (await executeWorkflow(author, workflowId)).output,
      "[sandbox] Write a haiku about rain in English.",
    );
  });

  test("runs a workflow as an execution of its own, in a map too, and sums up what they spent", async () => {
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

  test("fails with what it called, and takes it along when it is canceled", async () => {
    const failing = await createWorkflow(author, {
      steps: [echoStep("a", "x", { model: "sandbox-context" })],
    });
    const outer = await createWorkflow(author, { steps: [runs(failing)] });
    const run = await executeWorkflow(author, outer);
    assert.deepEqual([run.status, run.error.code], ["failed", "CONTEXT_LENGTH_EXCEEDED"]);
    const sleeping = await createWorkflow(author, {
      steps: [{ id: "long", type: "delay", seconds: 60_000 }],
    });
    const id = await startExecution(author, await createWorkflow(author, { steps: [runs(sleeping)] }));
    const { executionId } = await becomes(
      () => stepOf(author, id, "other"),
      (step) => Boolean(step?.executionId),
    );
    await untilStatus(author, executionId, "waiting");
    await cancelExecution(author, id);
    await untilStatus(author, executionId, "canceled");
  });

  test("is refused before it begins where something is not bought, has no key, or is too deep", async () => {
    const other = await market.createUser();
    const theirs = await createProduct(other, { compatibility: ["anthropic"] });
    const own = await createProduct(author, { compatibility: ["anthropic"] });
    let deep = await createWorkflow(author, { steps: [transformStep("a", "1")] });
    for (let n = 0; n < 3; n++) deep = await createWorkflow(author, { steps: [runs(deep)] });
    const workflowId = await createWorkflow(author, {
      steps: [
        { ...runs(theirs, { variables: { topic: "'x'" } }), id: "a" },
        { ...runs(own, { variables: { topic: "'x'" } }), id: "b" },
        { ...runs(deep), id: "c" },
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

  test("is asked again when it is called: what was given back meanwhile is not run", async () => {
    const other = await market.createUser();
    const theirs = await createProduct(other);
    const buyer = await market.createUser();
    await buyProduct(buyer, theirs);
    const workflowId = await createWorkflow(buyer, {
      steps: [
        { id: "later", type: "delay", seconds: 60 },
        runs(theirs, { needs: ["later"], variables: { topic: "'x'" } }),
      ],
    });
    const id = await startExecution(buyer, workflowId);
    await untilStatus(buyer, id, "waiting");
    await refundEverything(market, buyer);
    market.clock.forward(60_000);
    assert.equal((await untilStatus(buyer, id, "failed")).error.code, "UNAUTHORIZED");
  });

  test("that could not be called was not used, so that it can still be given back at once", async () => {
    const theirs = await createProduct(await market.createUser());
    const buyer = await market.createUser();
    await buyProduct(buyer, theirs);
    const key = await createProviderKey(buyer);
    const workflowId = await createWorkflow(buyer, {
      steps: [
        { id: "later", type: "delay", seconds: 60 },
        runs(theirs, { needs: ["later"], variables: { topic: "'x'" } }),
      ],
    });
    const id = await startExecution(buyer, workflowId, { apiKeys: { openai: key } });
    await untilStatus(buyer, id, "waiting");
    assert.equal((await buyer.delete(`/v1/ai/keys/${key}`)).status, 200);
    market.clock.forward(60_000);
    assert.equal((await untilStatus(buyer, id, "failed")).error.code, "PROVIDER_KEY_NOT_FOUND");
    const { rows } = await market.query("select used_at from entitlements where product_id = $1", [
      toUuid("prod", theirs),
    ]);
    assert.deepEqual(rows, [{ used_at: null }]);
  });

  test("counts as a run of that product for its author, who sees nothing else of it", async () => {
    const other = await market.createUser();
    const theirs = await createProduct(other);
    const buyer = await market.createUser();
    await buyProduct(buyer, theirs);
    const openai = await createProviderKey(buyer);
    const topic = "a-buyers-secret";
    const workflowId = await createWorkflow(buyer, {
      steps: [runs(theirs, { variables: { topic: `'${topic}'` }, onError: "continue" })],
    });
    for (const next of [{ answer: { text: topic } }, "bad-key"] as const) {
      provider.next(next);
      await executeWorkflow(buyer, workflowId, { apiKeys: { openai } });
    }
    const told = await other.get(`/v1/products/${theirs}/runs`);
    assert.deepEqual(told.body.data, {
      total: 2,
      completed: 1,
      failed: 1,
      canceled: 0,
      buyers: 1,
      last30Days: 2,
    });
    assert.ok(!told.text.includes(topic));
    const { body } = await buyer.get("/v1/ai/executions");
    assert.deepEqual(
      body.data.map(({ type }: { type: string }) => type),
      ["WORKFLOW", "WORKFLOW"],
      "in the buyer's history it is a step",
    );
    const { rows } = await market.query("select * from executions where product_id = $1", [
      toUuid("prod", theirs),
    ]);
    assert.ok(!JSON.stringify(rows).includes(topic));
  });
});
