import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { suite, test } from "node:test";
import { RunReceipt } from "@stoa/contract";
import { compactVerify, createLocalJWKSet } from "jose";
import { createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { exportOf, jsonLines, sendImport } from "../../../test/import-export.ts";
import { assertError, type Client } from "../../../test/market.ts";
import { runToCompletion } from "../../../test/runs.ts";
import {
  createWorkflow,
  definitionOf,
  echoStep,
  executeWorkflow,
  openWorkflows,
  transformStep,
} from "../../../test/workflows.ts";

const { market } = await openWorkflows();
const seller = await market.createUser({ role: "seller" });
const guest = market.service.ctx.guests.cookie();
/** Without an account. */
const visitor: Pick<Client, "get"> = {
  get: (path) => market.as(null).get(path, { cookie: `${guest.name}=${guest.value}` }),
};

const sample = { input: { topic: "rain" }, output: "Rain on the roof", model: "gpt-5-mini" };
const samplesOf = async (productId: string, reader: Pick<Client, "get"> = seller) =>
  (await reader.get(`/v1/products/${productId}`)).body.data.samples;
const send = (productId: string, samples: unknown, who = seller) =>
  who.patch(`/v1/products/${productId}`, { samples });

/** Verified with the published keys. */
async function readReceipt(receipt: string): Promise<RunReceipt> {
  const keys = await market.as(null).get("/.well-known/stoa-receipts.json");
  const { payload } = await compactVerify(receipt, createLocalJWKSet(keys.body));
  return RunReceipt.parse(JSON.parse(new TextDecoder().decode(payload)));
}

async function hasRun(productId: string, variables: object = { topic: "rain" }) {
  const { executionId, output } = await runToCompletion(seller, { productId, variables });
  return { executionId, output };
}

suite("typed samples and the license", () => {
  test("POST and PATCH: visitors read them, lists do not have them", async () => {
    const productId = await createProduct(seller, { license: "CC-BY-4.0", samples: [sample] });
    const { data } = (await visitor.get(`/v1/products/${productId}`)).body;
    assert.equal(data.license, "CC-BY-4.0");
    assert.deepEqual(data.samples, [{ ...sample, createdAt: market.clock.now.toISOString() }]);
    const [card] = (await visitor.get("/v1/products?sort=createdAt&limit=1")).body.data;
    assert.deepEqual([card.id, card.samples, card.license], [productId, undefined, undefined]);
    const plain = (await seller.get(`/v1/products/${await createDraft(seller)}`)).body.data;
    assert.deepEqual([plain.license, plain.samples], [null, []]);
  });

  test("a change of a published product: an event with the change, and no new version", async () => {
    const productId = await createProduct(seller);
    const { data } = (await seller.patch(`/v1/products/${productId}`, { license: "MIT", samples: [sample] }))
      .body;
    assert.deepEqual([data.version, data.license], ["1.0.0", "MIT"]);
    const [event] = (await seller.get("/v1/events?type=product.updated&limit=1")).body.data;
    assert.deepEqual(event.data.product.changes, {
      license: { old: null, new: "MIT" },
      samples: { old: [], new: data.samples },
    });
    const cleared = (await seller.patch(`/v1/products/${productId}`, { license: null, samples: [] })).body
      .data;
    assert.deepEqual([cleared.license, cleared.samples], [null, []]);
  });

  test("sent back as they were read: no change, and the old ones keep their time beside a new one", async () => {
    const productId = await createDraft(seller, { samples: [sample] });
    const before = (await seller.get(`/v1/products/${productId}`)).body.data;
    market.clock.forward(60_000);
    assert.equal((await send(productId, before.samples)).body.data.updatedAt, before.updatedAt);
    const second = { ...sample, output: "Second" };
    const { data } = (await send(productId, [second, ...before.samples])).body;
    const createdAt = market.clock.now.toISOString();
    assert.deepEqual(data.samples, [{ ...second, createdAt }, ...before.samples]);
  });

  test("invisible characters: removed from texts", async () => {
    const hidden = {
      input: { topic: "ra\u202ein\u0007" },
      output: "One\r\n\u200bTwo\u{e0041}  ",
      model: "m",
    };
    const productId = await createDraft(seller, { samples: [hidden] });
    const [stored] = await samplesOf(productId);
    assert.deepEqual([stored.input, stored.output], [{ topic: "rain" }, "One\nTwo  "]);
  });

  const many = (count: number) => Array.from({ length: count }, (_, at) => at);
  for (const [what, problem, field] of [
    ["six", many(6).map(() => sample), "samples"],
    ["no output", [{ ...sample, output: undefined }], "samples[0].output"],
    ["no input", [{ output: "x", model: "x" }], "samples[0].input"],
    ["no model", [{ ...sample, model: undefined }], "samples[0].model"],
    ["an empty output", [{ ...sample, output: " \u200b" }], "samples[0].output"],
    ["an output that is no text", [{ ...sample, output: { a: 1 } }], "samples[0].output"],
    ["an input that is no text", [sample, { ...sample, input: { n: 1 } }], "samples[1].input.n"],
    ["a name of no variable", [{ ...sample, input: { "a b": "x" } }], "samples[0].input"],
    ["a long output", [{ ...sample, output: "x".repeat(20_001) }], "samples[0].output"],
    ["a long input", [{ ...sample, input: { topic: "x".repeat(20_000) } }], "samples[0].input"],
    ["a model of two lines", [{ ...sample, model: "a\nb" }], "samples[0].model"],
    ["an unknown field", [{ ...sample, cost: 1 }], "samples[0].cost"],
  ] as const) {
    test(`${what}: 400 at ${field}`, async () => {
      const reply = await seller.post("/v1/products", { ...haiku, samples: problem });
      assert.equal(assertError(reply, 400, "INVALID_REQUEST").field, field);
      assertError(await send(await createDraft(seller), problem), 400, "INVALID_REQUEST", field);
    });
  }

  test("a workflow: any JSON of a bounded size, and names without invisible characters", async () => {
    const workflow = { type: "WORKFLOW", content: definitionOf({ steps: [transformStep("a", "1")] }) };
    const rich = {
      input: { topic: null, list: [1, { deep: "\u202etext" }] },
      output: { z: [], a: 0 },
      model: "m",
    };
    const productId = await createDraft(seller, { ...workflow, samples: [rich] });
    const [stored] = await samplesOf(productId);
    assert.deepEqual(stored.input, { topic: null, list: [1, { deep: "text" }] });
    assert.equal(JSON.stringify(stored.output), '{"z":[],"a":0}', "in the order of the author");
    for (const [output, field] of [
      [many(201), "samples[0].output"],
      [{ "a\u200bb": 1 }, "samples[0].output"],
      [null, "samples[0].output"],
      [JSON.parse("[".repeat(33) + "]".repeat(33)), "samples[0].output"],
      [["x".repeat(20_000)], "samples[0].output"],
    ] as const)
      assertError(await send(productId, [{ ...rich, output }]), 400, "INVALID_REQUEST", field);
    const toPrompt = { type: "PROMPT", content: "Write." };
    const reply = await seller.patch(`/v1/products/${productId}`, toPrompt);
    assertError(reply, 400, "INVALID_REQUEST", "samples[0].input.topic");
    const both = await seller.patch(`/v1/products/${productId}`, { ...toPrompt, samples: [sample] });
    assert.equal(both.status, 200, both.text);
  });

  test("a product that moderators withdrew: only its author reads them", async () => {
    const productId = await createProduct(seller, { samples: [sample] });
    const buyer = await market.createUser();
    await buyer.post("/v1/purchases", { productId });
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    const suspension = { reasonCode: "malicious", reason: "Steals." };
    assert.equal((await admin.post(`/v1/admin/products/${productId}/suspend`, suspension)).status, 200);
    assert.deepEqual(await samplesOf(productId, buyer), []);
    assert.equal((await samplesOf(productId)).length, 1);
  });
});

suite("samples of runs", () => {
  test("executionId: input, output and model are copied, and stay when the run is deleted", async () => {
    const productId = await createProduct(seller);
    const { executionId, output } = await hasRun(productId);
    const ranAt = market.clock.now.toISOString();
    market.clock.forward(60_000);
    const { data } = (await send(productId, [{ executionId }])).body;
    const { model, receipt } = data.samples[0];
    const copied = { input: { topic: "rain" }, output, model, executionId };
    assert.deepEqual(data.samples, [{ ...copied, createdAt: ranAt, receipt }]);
    const { execution, texts } = await readReceipt(receipt.receipt);
    assert.equal(execution.id, executionId);
    const hash = createHmac("sha256", Buffer.from(receipt.salt, "base64url")).update(output).digest("hex");
    assert.equal(texts?.output, hash);
    assert.match(copied.model, /./);
    assert.equal((await seller.delete(`/v1/ai/executions/${executionId}`)).status, 200);
    assert.deepEqual(await samplesOf(productId, visitor), data.samples);
    const again = await send(productId, [...data.samples, sample]);
    assert.equal(again.status, 200, again.text);
    assert.deepEqual(again.body.data.samples[0], data.samples[0]);
    assertError(
      await send(productId, [{ ...data.samples[0], output: "Better" }]),
      422,
      "VALIDATION_ERROR",
      "samples[0].executionId",
    );
  });

  test("texts sent beside it: must be those of the run", async () => {
    const productId = await createDraft(seller);
    const { executionId, output } = await hasRun(productId);
    const same = await send(productId, [{ executionId, output, input: { topic: "rain" } }]);
    assert.equal(same.status, 200, same.text);
    await send(productId, []);
    for (const other of [{ output: `${output}!` }, { input: { topic: "snow" } }, { model: "gpt-9" }])
      assertError(
        await send(productId, [sample, { executionId, ...other }]),
        422,
        "VALIDATION_ERROR",
        "samples[1].executionId",
      );
  });

  test("no run of the author and the product, not completed, without texts: 422", async () => {
    const productId = await createProduct(seller);
    const other = await createDraft(seller);
    const buyer = await market.createUser();
    await buyer.post("/v1/purchases", { productId });
    const theirs = await runToCompletion(buyer, { productId });
    const unstored = await runToCompletion(seller, { productId, options: { store: false } });
    const failed = await seller.post("/v1/ai/execute", {
      productId,
      apiKeyId: "sandbox",
      variables: { topic: "rain" },
      options: { model: "sandbox-500" },
    });
    for (const executionId of [
      theirs.executionId,
      unstored.executionId,
      failed.body.error.details.executionId,
      (await hasRun(other)).executionId,
      "exec_nothing",
    ])
      assertError(
        await send(productId, [{ executionId }]),
        422,
        "VALIDATION_ERROR",
        "samples[0].executionId",
      );
    const { executionId } = await hasRun(productId);
    const created = await seller.post("/v1/products", { ...haiku, samples: [{ ...sample, executionId }] });
    assertError(created, 422, "VALIDATION_ERROR", "samples[0].executionId");
  });

  test("an administrator publishes no run of the author", async () => {
    const productId = await createProduct(seller);
    const { executionId } = await hasRun(productId);
    const { userId } = await market.createUser({ role: "admin" });
    const admin = await market.createSession(userId, { secondFactor: true });
    const refused = await send(productId, [{ executionId }], admin);
    assertError(refused, 422, "VALIDATION_ERROR", "samples[0].executionId");
    await send(productId, [{ executionId }]);
    const kept = await send(productId, [sample, ...(await samplesOf(productId))], admin);
    assert.equal(kept.status, 200, kept.text);
  });

  test("an output with invisible characters: shown without them, and without a receipt of another text", async () => {
    const productId = await createProduct(seller, { content: "a\u200bb {{topic}}" });
    const options = { model: "sandbox-echo" };
    const { executionId } = await runToCompletion(seller, { productId, variables: { topic: "x" }, options });
    const [sample] = (await send(productId, [{ executionId }])).body.data.samples;
    assert.match(sample.output, /ab x$/);
    assert.equal(sample.receipt, undefined);
  });

  test("a workflow: its input, result and the models of its steps", async () => {
    const steps = [
      echoStep("one", "Say {{word}}", { vars: { word: "input.word" } }),
      echoStep("two", "Again", { model: "sandbox" }),
    ];
    const workflowId = await createWorkflow(seller, { steps, result: '{"said": steps.one.output}' });
    const run = await executeWorkflow(seller, workflowId, { input: { word: "hello" } });
    const { data } = (await send(workflowId, [{ executionId: run.executionId }])).body;
    const [{ input, output, model }] = data.samples;
    assert.deepEqual([input, output], [{ word: "hello" }, { said: "[sandbox] Say hello" }]);
    assert.equal(model, "sandbox-echo, sandbox");
  });

  test("a workflow that calls no model: the author names what it is", async () => {
    const workflowId = await createWorkflow(seller, { steps: [transformStep("a", "2")] });
    const { executionId } = await executeWorkflow(seller, workflowId);
    assertError(await send(workflowId, [{ executionId }]), 422, "VALIDATION_ERROR", "samples[0].model");
    const named = await send(workflowId, [{ executionId, model: "none" }]);
    assert.deepEqual(named.body.data.samples[0].model, "none");
    assert.equal((await send(workflowId, [{ executionId, model: "none" }])).status, 200);
  });

  test("an output that is too long: 422", async () => {
    const productId = await createDraft(seller, { content: "x".repeat(20_000) });
    const long = { productId, variables: {}, options: { model: "sandbox-echo" } };
    const { executionId } = await runToCompletion(seller, long);
    const reply = await send(productId, [{ executionId }]);
    assertError(reply, 422, "VALIDATION_ERROR", "samples[0].executionId");
    assert.match(reply.body.error.message, /its output has 20010 characters/);
  });

  test("export and import: unchanged where it came from, typed in another shop", async () => {
    const author = await market.createUser();
    const productId = await createDraft(author);
    const { executionId, output } = await runToCompletion(author, { productId });
    await send(productId, [{ executionId }, sample], author);
    // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects by asserting it
    const [line] = (await exportOf(author)) as any[];
    const [copied, typed] = line.samples;
    assert.deepEqual([copied.executionId, copied.output, typed], [executionId, output, sample]);
    await author.delete(`/v1/ai/executions/${executionId}`);
    assert.equal((await sendImport(author, jsonLines(line))).body.data.unchanged, 1);
    const forged = { ...line, samples: [{ ...copied, output: "Better" }] };
    const refused = await sendImport(author, jsonLines(forged));
    assertError(refused, 422, "VALIDATION_ERROR", "samples[0].executionId");
    const other = await market.createUser();
    assert.equal((await sendImport(other, jsonLines(line))).body.data.created, 1);
    assert.equal(copied.receipt, undefined);
    const { executionId: _, ...texts } = copied;
    assert.deepEqual((await exportOf(other))[0]?.["samples"], [texts, sample]);
  });
});
