import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createDraft, createProduct, haiku } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
let stranger: Client;
let reader: Client;
let productId: string;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
  stranger = await market.createUser();
  reader = await market.createUser({ permissions: ["products:read"] });
  productId = await createProduct(seller);
});
after(() => market.close());

const tooLarge = "x".repeat(1024 * 1024 + 1);
const asJson = { "content-type": "application/json" };

test("401: before path, method, permission, size, media type and body", async () => {
  const nobody = market.as(null);
  const wrong = { body: tooLarge, headers: { "content-type": "text/plain" } };
  for (const [method, path] of [
    ["GET", "/v1/nothing"],
    ["DELETE", "/v1/products"],
    ["POST", "/v1/products"],
    ["PATCH", `/v1/products/${productId}`],
  ] as const) {
    assertError(await nobody.request(method, path, method === "GET" ? {} : wrong), 401, "INVALID_API_KEY");
  }
});

test("404 of a path and 405: before the permission", async () => {
  assertError(await reader.get("/v1/nothing"), 404, "NOT_FOUND");
  assertError(await reader.post("/v1/products/a/b/c", {}), 404, "NOT_FOUND");
  assertError(await reader.request("PUT", "/v1/purchases"), 405, "METHOD_NOT_ALLOWED");
});

test("405: names the allowed methods in Allow and details", async () => {
  for (const [path, allow] of [
    ["/v1/products", "GET, HEAD, POST"],
    [`/v1/products/${productId}`, "GET, HEAD, PATCH, DELETE"],
    [`/v1/products/${productId}/publish`, "POST"],
    ["/v1/ai/execute", "POST"],
    // The path also matches /v1/products/:productId, which must not count.
    ["/v1/products/facets", "GET, HEAD"],
  ] as const) {
    const reply = await reader.request("PUT", path);
    const details = assertError(reply, 405, "METHOD_NOT_ALLOWED");
    assert.equal(reply.headers.get("allow"), allow);
    assert.deepEqual(details.allowed, allow.split(", "));
  }
});

test("403 of a permission: names it, and comes before 413, 415, 400 and 404", async () => {
  for (const [body, headers] of [
    [tooLarge, asJson],
    ["<xml/>", { "content-type": "application/xml" }],
    ["{", asJson],
  ] as const) {
    const details = assertError(
      await reader.request("POST", "/v1/products", { body, headers }),
      403,
      "UNAUTHORIZED",
    );
    assert.equal(details.required, "products:write");
  }
  assertError(await reader.post("/v1/products/prod_nothing/publish"), 403, "UNAUTHORIZED");
  assertError(await reader.get("/v1/purchases?unknown=1"), 403, "UNAUTHORIZED");
});

test("413 before 415, 415 before 400", async () => {
  const asText = { "content-type": "text/plain" };
  const path = "/v1/products";
  assertError(
    await seller.request("POST", path, { body: tooLarge, headers: asText }),
    413,
    "PAYLOAD_TOO_LARGE",
  );
  assertError(
    await seller.request("POST", path, { body: "{", headers: asText }),
    415,
    "UNSUPPORTED_MEDIA_TYPE",
  );
});

test("400: before the object is read", async () => {
  assertError(
    await seller.patch("/v1/products/prod_nothing", { price: -1 }),
    400,
    "INVALID_REQUEST",
    "price",
  );
  assertError(
    await seller.post("/v1/products/prod_nothing/reviews", { rating: 6 }),
    400,
    "INVALID_REQUEST",
    "rating",
  );
});

test("404 of the object: before 403, and hides invisible objects", async () => {
  const draft = await createDraft(seller);
  assertError(await stranger.patch(`/v1/products/${draft}`, { price: 2 }), 404, "PRODUCT_NOT_FOUND");
  assertError(await stranger.delete(`/v1/products/${draft}`), 404, "PRODUCT_NOT_FOUND");
  assertError(await stranger.patch(`/v1/products/${productId}`, { price: 2 }), 403, "UNAUTHORIZED");
});

test("403 of the owner: before 409 and 422", async () => {
  assertError(await stranger.post(`/v1/products/${productId}/publish`), 403, "UNAUTHORIZED");
  assertError(await seller.post(`/v1/products/${productId}/publish`), 409, "INVALID_STATE");
  assertError(await stranger.patch(`/v1/products/${productId}`, { version: "0.0.1" }), 403, "UNAUTHORIZED");
  assertError(await seller.patch(`/v1/products/${productId}`, { version: "0.0.1" }), 422, "VALIDATION_ERROR");
});

test("an id of any form without an object: 404 with the noun's code", async () => {
  for (const id of ["x", "1", productId.replace("prod", "ord"), "prod_", "..;", "%F0%9F%8C%B8"]) {
    assertError(await seller.get(`/v1/products/${id}`), 404, "PRODUCT_NOT_FOUND");
    assertError(await seller.get(`/v1/products/${id}/reviews`), 404, "PRODUCT_NOT_FOUND");
    assertError(await seller.get(`/v1/purchases/${id}`), 404, "ORDER_NOT_FOUND");
    assertError(await seller.get(`/v1/events/${id}`), 404, "EVENT_NOT_FOUND");
    assertError(await seller.get(`/v1/ai/executions/${id}`), 404, "EXECUTION_NOT_FOUND");
    assertError(await seller.delete(`/v1/ai/keys/${id}`), 404, "PROVIDER_KEY_NOT_FOUND");
    const run = { productId: id, apiKeyId: "sandbox" };
    assertError(await seller.post("/v1/ai/execute", run), 404, "PRODUCT_NOT_FOUND");
    assertError(await seller.post("/v1/purchases", { productId: id }), 404, "PRODUCT_NOT_FOUND");
  }
});

test("another account's order, event, execution or key: 404, never 403", async () => {
  const buyer = await market.createUser();
  const orderId = await buyProduct(buyer, productId);
  const input = { productId, apiKeyId: "sandbox", variables: { topic: "rain" } };
  const { executionId } = (await buyer.post("/v1/ai/execute", input)).body.data;
  const key = await buyer.post("/v1/ai/keys", {
    provider: "openai",
    name: "mine",
    key: "sk-0123456789abcdef",
  });
  const [event] = (await buyer.get("/v1/events")).body.data;

  assertError(await stranger.get(`/v1/purchases/${orderId}`), 404, "ORDER_NOT_FOUND");
  assertError(await stranger.get(`/v1/events/${event.id}`), 404, "EVENT_NOT_FOUND");
  assertError(await stranger.get(`/v1/ai/executions/${executionId}`), 404, "EXECUTION_NOT_FOUND");
  assertError(await stranger.delete(`/v1/ai/executions/${executionId}`), 404, "EXECUTION_NOT_FOUND");
  const keyPath = `/v1/ai/keys/${key.body.data.id}`;
  assertError(await stranger.patch(keyPath, { name: "yours" }), 404, "PROVIDER_KEY_NOT_FOUND");
  assertError(await stranger.delete(keyPath), 404, "PROVIDER_KEY_NOT_FOUND");
  assertError(await stranger.post(`${keyPath}/verify`), 404, "PROVIDER_KEY_NOT_FOUND");
});

test("afterwards: a published product can be bought, so no refusal left a lock", async () => {
  assert.equal((await seller.post("/v1/products", haiku)).status, 201);
  assert.equal((await seller.get(`/v1/products/${productId}`)).body.data.status, "published");
});
