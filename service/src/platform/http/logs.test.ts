import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let buyer: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "NAMEMARK" });
  buyer = await market.createUser();
});
after(() => market.close());

/** Secrets and texts of users, which no log line may contain. */
const marks = {
  content: "CONTENTMARK",
  variable: "VARIABLEMARK",
  providerKey: "sk-PROVIDERKEYMARK-0123456789",
  changedKey: "sk-CHANGEDKEYMARK-0123456789",
  search: "SEARCHMARK",
  comment: "COMMENTMARK",
  title: "TITLEMARK",
  unknownKey: "stoa_test_UNKNOWNKEYMARK",
};

function assertUnspoken() {
  const log = market.logs.join("\n");
  for (const [what, mark] of Object.entries({ ...marks, sellersKey: seller.key, buyersKey: buyer.key })) {
    assert.ok(
      !log.includes(mark),
      `${what} is in the log: ${market.logs.find((line) => line.includes(mark))}`,
    );
    assert.ok(!log.includes(encodeURIComponent(mark)), `${what} is in the log, encoded`);
  }
  assert.doesNotMatch(log, /stoa_(test|live)_|authorization|api_key|bearer/i);
}

const lineOf = (id: string) =>
  market.logs.map((line) => JSON.parse(line)).find(({ request, status }) => request === id && status);

test("every credential and text in use: none in the log", async () => {
  const productId = await createProduct(seller, {
    title: marks.title,
    content: `${marks.content} about {{topic}}`,
  });
  await buyProduct(buyer, productId);
  const run = { productId, apiKeyId: "sandbox", variables: { topic: marks.variable } };
  for (const model of ["sandbox-echo", "sandbox-filter", "sandbox-500", "sandbox-401", "sandbox-context"]) {
    const headers = { "idempotency-key": `run-${model}` };
    await buyer.post("/v1/ai/execute", { ...run, options: { model } }, headers);
  }
  const key = {
    provider: "openai-compatible",
    name: marks.title,
    key: marks.providerKey,
    baseUrl: "http://127.0.0.1:9",
  };
  const stored = await buyer.post("/v1/ai/keys", key);
  assert.equal(stored.status, 201, stored.text);
  await buyer.patch(`/v1/ai/keys/${stored.body.data.id}`, { key: marks.changedKey });
  await buyer.post(`/v1/ai/keys/${stored.body.data.id}/verify`);
  await buyer.post("/v1/ai/execute", { ...run, apiKeyId: stored.body.data.id, options: { model: "any" } });
  await buyer.post(`/v1/products/${productId}/reviews`, { rating: 4, comment: marks.comment });
  await buyer.get(`/v1/products?search=${marks.search}`);
  assertUnspoken();
});

test("refusals about them: none in the log", async () => {
  await market.as(marks.unknownKey).get("/v1/products");
  await market.as(null).get(`/v1/products?api_key=${buyer.key}&search=${marks.search}`);
  await market.as(null).get(`/v1/products?api_key=${marks.unknownKey}`);
  await market.as(null).get(`/v1/nothing/${marks.search}?api_key=${buyer.key}`);
  await market.as(null).get(`/v1/products/%zz?api_key=${buyer.key}`);
  await seller.get(`/v1/products?api_key=${buyer.key}`);
  await buyer.get(`/v1/products/${marks.search}`);
  await buyer.get(`/nothing/${marks.search}?token=${buyer.key}`);
  await buyer.post("/v1/ai/execute", { variables: marks.variable, [marks.variable]: 1 });
  await buyer.request("POST", "/v1/ai/keys", {
    body: `{"key": "${marks.providerKey}"`,
    headers: { "content-type": "application/json" },
  });
  await buyer.post("/v1/ai/keys", { provider: "openai", name: "x", key: `${marks.providerKey} with space` });
  assertUnspoken();
});

test("an internal error that quotes its row: none in the log", async () => {
  await market.query(
    "alter table product_versions add constraint broken check (content not like '%CONTENTMARK%') not valid",
  );
  await market.query("alter table provider_keys add constraint broken check (name <> 'TITLEMARK') not valid");
  const before = market.logs.length;
  const product = { title: "x", type: "PROMPT", price: 1, content: marks.content };
  const failed = await seller.post("/v1/products", product, { "x-request-id": "failed" });
  assertError(failed, 500, "INTERNAL_ERROR");
  assert.ok(!failed.text.includes("broken") && !failed.text.includes(marks.content), failed.text);
  const key = { provider: "openai", name: marks.title, key: marks.providerKey };
  assertError(await buyer.post("/v1/ai/keys", key), 500, "INTERNAL_ERROR");
  await market.query("alter table product_versions drop constraint broken");
  await market.query("alter table provider_keys drop constraint broken");

  const lines = market.logs.slice(before).map((line) => JSON.parse(line));
  const [error] = lines.filter(({ msg }) => msg === "unexpected error");
  assert.equal(error.request, "failed");
  assert.match(error.err.message, /broken/, "the log says what failed");
  assert.match(error.err.stack, /products\.ts:\d+/, "and where");
  assertUnspoken();
});

test("a log line: request id, route pattern, status, duration and caller", async () => {
  const reply = await buyer.get("/v1/purchases/ord_nothing?unknown=1", { "x-request-id": "told" });
  assert.equal(reply.status, 400);
  const line = lineOf("told");
  assert.equal(line.method, "GET");
  assert.equal(line.route, "/v1/purchases/:orderId");
  assert.equal(line.status, 400);
  assert.equal(line.caller, buyer.userId);
  assert.ok(line.ms >= 0);
});

test("every request: one line, also refusals and unknown paths", async () => {
  const requests: [id: string, client: Client, method: string, path: string][] = [
    ["line-401", market.as(null), "GET", "/v1/products"],
    ["line-404", buyer, "GET", "/v1/nothing"],
    ["line-405", buyer, "PUT", "/v1/products"],
    ["line-zz", buyer, "GET", "/v1/products/%zz"],
    ["line-page", market.as(null), "GET", "/docs"],
  ];
  for (const [id, client, method, path] of requests) {
    await client.request(method, path, { headers: { "x-request-id": id } });
    const lines = market.logs.map((line) => JSON.parse(line)).filter(({ request }) => request === id);
    assert.equal(lines.length, 1, id);
  }
  assert.equal(lineOf("line-401").caller, undefined);
});

test("successful health checks: no line at info; errors of other types keep their message", async () => {
  for (const path of ["/healthz", "/readyz"]) {
    const { headers } = await market.as(null).get(path, { "x-request-id": `health${path.slice(1)}` });
    assert.ok(headers.get("x-request-id"));
  }
  await market.as(null).get("/v1/nothing");
  assert.ok(!market.logs.some((line) => /"request":"health(healthz|readyz)"/.test(line)));
  // The form in which pg-boss emits errors.
  market.service.ctx.log.error(
    { err: { code: "57P01", message: "terminated", queue: "send-mail" } },
    "job queue",
  );
  const { err } = JSON.parse(market.logs.at(-1)!);
  assert.deepEqual(err, { message: "terminated", code: "57P01" });
});
