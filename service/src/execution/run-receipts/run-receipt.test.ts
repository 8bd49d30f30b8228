import assert from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { after, before, test } from "node:test";
import { RunReceipt } from "@stoa/contract";
import { compactVerify, createLocalJWKSet } from "jose";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";
import { type ProviderServer, startProviderServer } from "../../../test/provider-server.ts";
import { createProviderKey, providersAt, run, runToCompletion } from "../../../test/runs.ts";
import { createWorkflow, echoStep, executeWorkflow, startWorker } from "../../../test/workflows.ts";
import { daysAfter } from "../../core/dates.ts";
import { PRICE_LIST } from "../provider-keys/cost.ts";
import { findOrCreateSigningKey } from "./signing-keys.ts";

let provider: ProviderServer;
let market: Market;
let author: Client;
let buyer: Client;
let productId: string;
before(async () => {
  provider = await startProviderServer();
  market = await openMarket({ providers: providersAt(provider) });
  author = await market.createUser();
  buyer = await market.createUser();
  productId = await createProduct(author);
  await buyProduct(buyer, productId);
});
after(async () => {
  await market.close();
  await provider.close();
});

const ask = (caller: Client, id: string) => caller.get(`/v1/ai/executions/${id}/receipt`);
async function receiptOf(
  id: string,
  caller = buyer,
): Promise<{ receipt: string; salt: string; keysUrl: string }> {
  const reply = await ask(caller, id);
  assert.equal(reply.status, 200, reply.text);
  return reply.body.data;
}
async function publishedKeys() {
  const reply = await market.as(null).get("/.well-known/stoa-receipts.json");
  assert.equal(reply.status, 200, reply.text);
  return reply.body;
}
/** Verifies a receipt with nothing but the public keys. */
async function read(receipt: string): Promise<RunReceipt> {
  const { payload, protectedHeader } = await compactVerify(receipt, createLocalJWKSet(await publishedKeys()));
  assert.equal(protectedHeader.typ, "stoa-run-receipt");
  return RunReceipt.parse(JSON.parse(new TextDecoder().decode(payload)));
}

test("receipt of a run: contains product, model, usage and status, and verifies with the public keys", async () => {
  const apiKeyId = await createProviderKey(buyer);
  const { executionId, usage, metadata } = await runToCompletion(buyer, { productId, apiKeyId });
  const { receipt, keysUrl } = await receiptOf(executionId);
  assert.equal(keysUrl, `${market.service.ctx.links.origin()}/.well-known/stoa-receipts.json`);
  const { execution, texts: _, iat, ...rest } = await read(receipt);
  const { currency, prices, ...spent } = rest.usage!;
  assert.deepEqual([spent, currency, prices], [usage, "USD", PRICE_LIST]);
  assert.equal(iat, Math.floor(market.clock.now.getTime() / 1_000));
  assert.equal(execution.id, executionId);
  assert.deepEqual(
    [execution.status, execution.finishReason, execution.errorCode],
    ["completed", metadata.finishReason, null],
  );
  assert.deepEqual(
    [rest.iss, rest.provider, rest.model, rest.steps],
    [market.service.ctx.links.origin(), "openai", metadata.model, null],
  );
  const contentSha256 = createHash("sha256").update(haiku.content).digest("hex");
  assert.deepEqual(rest.product, { id: productId, version: "1.0.0", contentSha256 });
});

test("texts: are salted hashes only", async () => {
  const variables = { topic: 'Schön — 🎉 \u0001 \\ "x"', language: "de" };
  const { executionId, output } = await runToCompletion(buyer, { productId, variables });
  const { receipt, salt } = await receiptOf(executionId);
  const content = await read(receipt);
  const key = Buffer.from(salt, "base64url");
  const hashed = (text: string) => createHmac("sha256", key).update(text).digest("hex");
  const { language, topic } = variables;
  assert.equal(content.texts!.variables, hashed(JSON.stringify({ language, topic })));
  assert.equal(content.texts!.output, hashed(output));
  const payload = Buffer.from(receipt.split(".")[1]!, "base64url").toString();
  for (const secret of ["Schön", output, salt]) assert.ok(!payload.includes(secret), secret);
});

test("two receipts of a run: have different salts and hashes", async () => {
  const { executionId } = await runToCompletion(buyer, { productId });
  const [first, second] = [await receiptOf(executionId), await receiptOf(executionId)];
  assert.notEqual(first.salt, second.salt);
  assert.notEqual((await read(first.receipt)).texts!.output, (await read(second.receipt)).texts!.output);
});

test("texts not stored: no hash and no salt", async () => {
  const { executionId } = await runToCompletion(buyer, { productId, options: { store: false } });
  const { receipt, salt } = await receiptOf(executionId);
  assert.deepEqual([salt, (await read(receipt)).texts], [null, null]);
});

test("failed run: has a receipt", async () => {
  const options = { model: "sandbox-500" };
  const failed = await run(buyer, { productId, options });
  const { executionId } = assertError(failed, 502, "PROVIDER_ERROR");
  const { execution, usage } = await read((await receiptOf(executionId)).receipt);
  assert.deepEqual([execution.status, execution.errorCode, usage], ["failed", "PROVIDER_ERROR", null]);
});

test("run of a draft: has no content hash, even after it is published", async () => {
  const draft = await createDraft(author);
  const { executionId } = await runToCompletion(author, { productId: draft });
  market.clock.forward(1_000);
  for (const action of [null, "publish"]) {
    if (action) await author.post(`/v1/products/${draft}/${action}`);
    const { product } = await read((await receiptOf(executionId, author)).receipt);
    assert.equal(product.contentSha256, null);
  }
});

test("run that is open, deleted or another user's: no receipt", async () => {
  const { executionId } = await runToCompletion(buyer, { productId });
  assertError(await ask(author, executionId), 404, "EXECUTION_NOT_FOUND");
  assertError(await ask(buyer, "exec_nothing"), 404, "EXECUTION_NOT_FOUND");
  await buyer.delete(`/v1/ai/executions/${executionId}`);
  assertError(await ask(buyer, executionId), 404, "EXECUTION_NOT_FOUND");
  const apiKeyId = await createProviderKey(buyer);
  provider.next("hang");
  const arrival = provider.nextRequest();
  const open = await run(buyer, { productId, apiKeyId }, { prefer: "respond-async" });
  const { executionId: running } = open.body.data;
  await arrival;
  assert.equal(assertError(await ask(buyer, running), 409, "INVALID_STATE").current, "running");
  await buyer.post(`/v1/ai/executions/${running}/cancel`);
});

test("workflow: the receipt lists each step and map item", async () => {
  const worker = startWorker(market);
  const workflowId = await createWorkflow(author, {
    input: { type: "object", properties: { b: { type: "integer" }, a: { type: "string" } } },
    steps: [
      echoStep("one", "Hello"),
      {
        id: "both",
        type: "map",
        needs: ["one"],
        items: "['x', 'y']",
        do: { ...echoStep("", "{{p}}", { vars: { p: "item" } }), id: undefined },
      },
    ],
    result: "{'b': steps.both.output, 'a': 1}",
  });
  const input = { b: 2, a: "x" };
  const { executionId, output } = await executeWorkflow(author, workflowId, { input });
  await worker.stop();
  const { receipt, salt } = await receiptOf(executionId, author);
  const { steps, texts, execution, provider } = await read(receipt);
  assert.deepEqual([execution.type, provider], ["WORKFLOW", null]);
  const rows = steps!.map(({ id, item, status, attempts, model }) => [id, item, status, attempts, model]);
  assert.deepEqual(rows.sort(), [
    ["both", null, "completed", 0, null],
    ["both", 0, "completed", 1, "sandbox-echo"],
    ["both", 1, "completed", 1, "sandbox-echo"],
    ["one", null, "completed", 1, "sandbox-echo"],
  ]);
  const hashed = (text: string) =>
    createHmac("sha256", Buffer.from(salt, "base64url")).update(text).digest("hex");
  assert.equal(texts!.variables, hashed('{"a":"x","b":2}'));
  assert.equal(texts!.output, hashed(`{"a":1,"b":${JSON.stringify(output.b)}}`));
});

test("changed receipt: does not verify", async () => {
  const { executionId } = await runToCompletion(buyer, { productId });
  const { receipt } = await receiptOf(executionId);
  const [header, payload, signature] = receipt.split(".") as [string, string, string];
  const altered = Buffer.from(Buffer.from(payload, "base64url").toString().replace("completed", "failed"));
  const none = Buffer.from('{"alg":"none"}').toString("base64url");
  for (const forged of [
    [header, altered.toString("base64url"), signature],
    [header, payload, `${signature.startsWith("A") ? "B" : "A"}${signature.slice(1)}`],
    [none, payload, ""],
  ])
    await assert.rejects(read(forged.join(".")), forged.join("."));
});

test("key older than a year: a new one signs, and old receipts still verify", async () => {
  const { executionId } = await runToCompletion(buyer, { productId });
  const { receipt: old } = await receiptOf(executionId);
  const before = (await publishedKeys()).keys;
  assert.deepEqual(Object.keys(before[0]).sort(), ["alg", "crv", "kid", "kty", "use", "x"]);
  market.clock.now = daysAfter(market.clock.now, 366);
  const kids = await Promise.all(
    Array.from({ length: 20 }, async () => (await findOrCreateSigningKey(market.service.ctx)).kid),
  );
  assert.equal(new Set(kids).size, 1, "concurrent requests create one key");
  const after = (await publishedKeys()).keys.map(({ kid }: { kid: string }) => kid);
  assert.deepEqual(after, [kids[0], ...before.map(({ kid }: { kid: string }) => kid)]);
  assert.equal((await read(old)).execution.id, executionId);
  assert.equal((await read((await receiptOf(executionId)).receipt)).execution.id, executionId);
});

test("public keys: readable from other origins and cacheable for five minutes", async () => {
  const reply = await market
    .as(null)
    .request("GET", "/.well-known/stoa-receipts.json", { headers: { origin: "https://elsewhere.example" } });
  assert.equal(reply.headers.get("access-control-allow-origin"), "*");
  assert.equal(reply.headers.get("content-type"), "application/jwk-set+json; charset=utf-8");
  assert.equal(reply.headers.get("cache-control"), "public, max-age=300");
});
