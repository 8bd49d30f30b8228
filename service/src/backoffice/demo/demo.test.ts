import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { permissions } from "@stoa/contract";
import { buyProduct, createProduct } from "../../../test/factories.ts";
import { assertError, type Market, openMarket } from "../../../test/market.ts";
import { createKeyAsOperator } from "../../accounts/api-keys/keys.ts";
import { createUser } from "../../accounts/people/users.ts";
import { verifyLedger } from "../../commerce/ledger/verification.ts";
import { removeDemo } from "./demo.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

const hasDemoSeller = async (name: string) => {
  const { ctx } = market.service;
  const userId = await createUser(ctx, { email: `${name}@example.com`, name, demo: true });
  const { key } = await createKeyAsOperator(ctx, { userId, name: "demo", permissions: [...permissions] });
  return { client: market.as(key), userId };
};

test("demo remove: published versions and unpaid orders too, no rows of others", async () => {
  const { client: demo } = await hasDemoSeller("unsold");
  const visitor = await market.createUser();
  const [demoProduct, own] = [await createProduct(demo), await createProduct(visitor)];
  await demo.patch(`/v1/products/${demoProduct}`, { content: "A second version about {{topic}}" });
  const declined = await visitor.post("/v1/purchases", {
    productId: demoProduct,
    paymentMethodId: "pm_test_declined",
  });
  assertError(declined, 402, "INSUFFICIENT_FUNDS");
  assert.deepEqual(await removeDemo(market.service.ctx), {
    ...{ removed: true, people: 1, products: 1, orders: 1 },
    note: "nothing of it is left",
  });
  assertError(await visitor.get(`/v1/products/${demoProduct}`), 404, "PRODUCT_NOT_FOUND");
  const { rows } = await market.query("select version from product_versions");
  assert.deepEqual(rows, [{ version: "1.0.0" }]);
  assert.equal((await visitor.get(`/v1/products/${own}`)).status, 200);
  assert.deepEqual((await visitor.get("/v1/purchases")).body.data, []);
});

test("demo remove, paid orders: closed accounts, a deleted product, a receipt for the buyer", async () => {
  const { ctx } = market.service;
  const { client: demo, userId } = await hasDemoSeller("sold");
  const [visitor, stranger] = [await market.createUser(), await market.createUser()];
  const productId = await createProduct(demo);
  const orderId = await buyProduct(visitor, productId);
  const { note, ...removed } = await removeDemo(ctx);
  assert.deepEqual(removed, { removed: true, people: 0, products: 0, orders: 0 });
  assert.match(note, /^1 orders that were paid stay in the ledger, with 1 products.* and 1 closed accounts/);
  const { body } = await visitor.get(`/v1/purchases/${orderId}`);
  assert.deepEqual([body.data.status, body.data.entitlement.status], ["completed", "active"]);
  assert.equal((await visitor.get(body.data.receipt.url)).status, 200);
  assertError(await stranger.get(`/v1/products/${productId}`), 404, "PRODUCT_NOT_FOUND");
  assert.equal(
    (await stranger.get("/v1/products?search=haiku")).body.data.length,
    1,
    "the one that is no demo's",
  );
  assertError(await demo.get("/v1/account"), 401, "INVALID_API_KEY");
  const { rows } = await market.query(
    "select name, demo, closed_at is not null as closed from users where id = $1",
    [userId],
  );
  assert.deepEqual(rows, [{ name: "Closed account", demo: false, closed: true }]);
  assert.deepEqual((await verifyLedger(ctx.db)).problems, []);
});

test("demo remove, repeated: nothing to remove, and its addresses are free", async () => {
  assert.equal((await removeDemo(market.service.ctx)).note, "nothing of it is left");
  await hasDemoSeller("sold");
});
