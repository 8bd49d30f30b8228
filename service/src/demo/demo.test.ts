import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { permissions } from "@stoa/contract";
import { hasBought, hasProduct } from "../../test/factories.ts";
import { assertError, type Market, openMarket } from "../../test/market.ts";
import { createKey } from "../keys/keys.ts";
import { createUser } from "../people/users.ts";
import { removeDemo } from "./demo.ts";

let market: Market;
before(async () => {
  market = await openMarket();
});
after(() => market.close());

test("the demo goes with its published versions and all that was bought of it, and takes nobody else's with it", async () => {
  const { ctx } = market.service;
  const userId = await createUser(ctx, { email: "demo@example.com", name: "Demo", demo: true });
  const demo = market.as((await createKey(ctx, { userId, name: "demo", permissions: [...permissions] })).key);
  const visitor = await market.hasUser();
  const [theirs, own] = [await hasProduct(demo), await hasProduct(visitor)];
  await demo.patch(`/v1/products/${theirs}`, { content: "A second version about {{topic}}" });
  await hasBought(visitor, theirs);
  assert.deepEqual(await removeDemo(ctx), { removed: true, people: 1, products: 1, orders: 1 });
  assertError(await visitor.get(`/v1/products/${theirs}`), 404, "PRODUCT_NOT_FOUND");
  const { rows } = await market.query("select version from product_versions");
  assert.deepEqual(rows, [{ version: "1.0.0" }]);
  assert.equal((await visitor.get(`/v1/products/${own}`)).status, 200);
});
