import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Client, type Market, openMarket } from "../../../test/market.ts";

let market: Market;
let seller: Client;
before(async () => {
  market = await openMarket();
  seller = await market.createUser({ name: "Seller" });
});
after(() => market.close());

test("three requests: a prompt is bought and run", async () => {
  const productId = await createProduct(seller);
  const buyer = await market.createUser();
  const list = await buyer.get("/v1/products?search=haiku");
  assert.equal(list.body.data[0].id, productId);
  await buyProduct(buyer, productId);
  const run = await buyer.post("/v1/ai/execute", {
    productId,
    apiKeyId: "sandbox",
    variables: { topic: "autumn" },
    options: { model: "sandbox-echo" },
  });
  assert.equal(run.body.data.output, "[sandbox] Write a haiku about autumn in English.", run.text);
});

test("an unknown path: 401 without a key, 404 with one", async () => {
  assertError(await market.as(null).get("/v1/nothing"), 401, "INVALID_API_KEY");
  assertError(await seller.get("/v1/nothing"), 404, "NOT_FOUND");
});
