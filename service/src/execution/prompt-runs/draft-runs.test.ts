import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { run } from "../../../test/runs.ts";
import { createWorkflow, echoStep } from "../../../test/workflows.ts";
import { SANDBOX_LABEL } from "../../integrations/ai-providers/sandbox.ts";

let market: Market;
let author: Client;
before(async () => {
  market = await openMarket();
  author = await market.createUser();
});
after(() => market.close());

const draft = { content: "Praise {{thing}} in {{words=three}} words." };
const variables = { thing: "rain" };
const tryOut = (caller: Client, productId: string, more: object = {}) =>
  run(caller, { productId, variables, draft, options: { model: "sandbox-echo" }, ...more });

test("draft of a product on sale: its author runs it, and nothing is saved", async () => {
  const productId = await createProduct(author);
  const reply = await tryOut(author, productId);
  assert.equal(reply.status, 200, reply.text);
  const { output, metadata, executionId } = reply.body.data;
  assert.equal(output, `${SANDBOX_LABEL}Praise rain in three words.`);
  assert.equal(metadata.productVersion, "1.0.0-draft");
  const stored = (await author.get(`/v1/products/${productId}`)).body.data;
  assert.deepEqual([stored.content, stored.version], [haiku.content, "1.0.0"]);
  const execution = (await author.get(`/v1/ai/executions/${executionId}`)).body.data;
  assert.deepEqual([execution.productVersion, execution.variables], ["1.0.0-draft", variables]);
  const sample = await author.patch(`/v1/products/${productId}`, { samples: [{ executionId }] });
  assertError(sample, 422, "VALIDATION_ERROR");
});

test("draft with messages and declared variables: both are used", async () => {
  const productId = await createDraft(author);
  const content = JSON.stringify([
    { role: "system", content: "Be brief." },
    { role: "user", content: "About {{thing}}" },
  ]);
  const declared = { content, contentFormat: "messages", variables: [{ name: "thing", enum: ["snow"] }] };
  const refused = await tryOut(author, productId, { draft: declared });
  assert.equal(assertError(refused, 422, "VALIDATION_ERROR").field, "variables.thing");
  const reply = await tryOut(author, productId, { draft: declared, variables: { thing: "snow" } });
  assert.equal(reply.status, 200, reply.text);
});

test("POST /ai/estimate with a draft: by the draft's length", async () => {
  const productId = await createDraft(author);
  const estimate = async (fields: object) => {
    const reply = await author.post("/v1/ai/estimate", { productId, ...fields });
    assert.equal(reply.status, 200, reply.text);
    return reply.body.data;
  };
  const long = { content: "word ".repeat(4_000) };
  for (const key of [{ apiKeyId: "sandbox" }, {}]) {
    const { productVersion, calls } = await estimate({ ...key, draft: long });
    assert.deepEqual([productVersion, calls[0].promptTokens.min], ["1.0.0-draft", 5_000]);
  }
});

test("draft of a buyer, an administrator or a stranger: 403", async () => {
  const productId = await createProduct(author);
  const buyer = await market.createUser();
  await buyProduct(buyer, productId);
  assert.equal(assertError(await tryOut(buyer, productId), 403, "UNAUTHORIZED").required, "author");
  const stranger = await market.createUser();
  assertError(await tryOut(stranger, productId), 403, "UNAUTHORIZED");
  const admin = await market.createUser({ role: "admin" });
  assertError(await tryOut(admin, productId), 403, "UNAUTHORIZED");
});

test("draft that PATCH would refuse: 400 with the field below draft", async () => {
  const productId = await createDraft(author);
  const fieldOf = async (bad: object) =>
    assertError(await tryOut(author, productId, { draft: { ...draft, ...bad } }), 400, "INVALID_REQUEST")
      .field;
  assert.equal(await fieldOf({ contentFormat: "messages" }), "draft.content");
  assert.equal(await fieldOf({ variables: [] }), "draft.variables");
  assert.equal(await fieldOf({ content: "" }), "draft.content");
  const both = await tryOut(author, productId, { options: { version: "1.0.0" } });
  assert.equal(assertError(both, 422, "VALIDATION_ERROR").field, "options.version");
});

test("draft for a workflow: 422", async () => {
  const productId = await createWorkflow(author, { steps: [echoStep("one", "Hello")] });
  const reply = await author.post("/v1/ai/estimate", { productId, draft });
  assert.equal(assertError(reply, 422, "VALIDATION_ERROR").field, "draft");
});
